//! The TLS of one socket. A socket without it owns none of this.

use crate::tls::suites;
use pgwire::scram::ChannelBinding;
use std::sync::{Arc, Weak};
use tls::{TlsError, TlsSession};

/// TLS on a socket.
#[derive(Debug)]
pub(crate) struct Secure {
    /// None while a handshake's thread has it.
    session: Option<TlsSession>,
    /// Tells that thread, for as long as the handshake lasts, that somebody waits for it.
    alive: Option<Arc<()>>,
    /// What binds a login to this connection.
    binding: Option<ChannelBinding>,
    /// All steps of the handshake are dear, since a certificate of the peer's is checked too.
    checks_peer: bool,
    /// Bytes have come with the order to start, which no receive will give.
    pub unread: bool,
}

impl Secure {
    /// A handshake that begins.
    pub(crate) fn begin(session: TlsSession, binding: Option<ChannelBinding>, checks_peer: bool) -> Self {
        Self { session: Some(session), alive: Some(Arc::new(())), binding, checks_peer, unread: false }
    }

    /// A connection whose handshake is over.
    pub(crate) const fn established(session: TlsSession) -> Self {
        Self { session: Some(session), alive: None, binding: None, checks_peer: false, unread: false }
    }

    /// The session, unless it is away.
    pub(crate) const fn session(&mut self) -> Option<&mut TlsSession> {
        self.session.as_mut()
    }

    /// For a thread that runs the next step of the handshake, if that is dear.
    pub(crate) fn take_for_dear_step(&mut self) -> Option<(TlsSession, Weak<()>)> {
        let alive = Arc::downgrade(self.alive.as_ref()?);
        let checks_peer = self.checks_peer;
        let is_dear = |session: &mut TlsSession| session.is_dear() || checks_peer && session.is_handshaking();
        self.session.take_if(is_dear).map(|session| (session, alive))
    }

    /// Back from that thread.
    pub(crate) fn give_back(&mut self, session: TlsSession) {
        self.session = Some(session);
        self.settle();
    }

    /// Gives up what is only needed during the handshake, once it is over.
    pub(crate) fn settle(&mut self) {
        if self.session.as_ref().is_some_and(|session| !session.is_handshaking()) {
            self.alive = None;
        }
    }

    pub(crate) fn binding(&self) -> Option<ChannelBinding> {
        self.binding.clone()
    }

    /// Puts the parts, encrypted, into `sealed`; `joined` is room to put them together. False if nothing can be sent as
    /// long as the handshake lasts: what a peer is told before that is lost.
    pub(crate) fn seal(
        &mut self,
        parts: &[&[u8]],
        joined: &mut Vec<u8>,
        sealed: &mut Vec<u8>,
    ) -> Result<bool, TlsError> {
        let Some(session) = self.session.as_mut().filter(|session| !session.is_handshaking()) else {
            return Ok(false);
        };
        if let [part] = parts {
            session.encrypt(part, sealed)?;
        } else {
            joined.clear();
            parts.iter().for_each(|part| joined.extend_from_slice(part));
            session.encrypt(joined, sealed)?;
        }
        Ok(true)
    }

    /// The announcement that nothing more will be sent, if that can be said.
    pub(crate) fn farewell(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(session) = self.session.as_mut().filter(|session| !session.is_handshaking()) {
            // After an error nothing can be said any more, which is as good.
            let _ = session.close_notify(&mut out);
        }
        out
    }

    /// Version and suite, as PgBouncer prints them.
    pub(crate) fn describe(&self) -> String {
        self.session.as_ref().map(suites::describe).unwrap_or_default()
    }

    pub(crate) fn into_session(self) -> Option<TlsSession> {
        self.session
    }
}

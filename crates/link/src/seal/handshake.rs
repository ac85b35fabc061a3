//! The two messages of a handshake.

use super::crypto::Resolver;
use super::payload::{Answer, Request};
use super::record::{Sealer, Unsealer};
use super::{KEY_BYTES, crypto};
use crate::fields::Malformed;
use crate::message::MAX_SEAL_BYTES;
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState};
use std::fmt;
use std::sync::LazyLock;
use uuid::Uuid;

static PARAMS: LazyLock<Option<NoiseParams>> = LazyLock::new(|| "Noise_IK_25519_AESGCM_SHA256".parse().ok());

/// A handshake that cannot go on. It says nothing of what was in it.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The message does not open: another key, other parties, or it was changed.
    #[error("the sealed message does not open")]
    DoesNotOpen,
    /// It opens, and holds something that it must not.
    #[error("the sealed message is malformed: {0}")]
    Malformed(#[from] Malformed),
    /// A key that cannot be used, or no randomness: a fault on this side.
    #[error("the seal cannot be made")]
    Unusable,
}

/// Between whom, and on what account: whoever changes any of it gets a message that does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parties {
    /// The network's name.
    pub network: [u8; 32],
    /// Who is to open it.
    pub provider: Uuid,
    /// Who asks.
    pub opener: Uuid,
    /// What pays.
    pub contract: Uuid,
}

impl Parties {
    fn prologue(&self) -> Vec<u8> {
        let mut prologue = b"holdfast seal 1\0".to_vec();
        prologue.extend_from_slice(&self.network);
        for id in [self.provider, self.opener, self.contract] {
            prologue.extend_from_slice(id.as_bytes());
        }
        prologue
    }
}

/// The opener's end, its first message sent.
pub struct Initiator(HandshakeState);

impl Initiator {
    /// With the opener's private key and the provider's public one; and the first message.
    ///
    /// # Errors
    /// A key cannot be used.
    pub fn new(
        private: &[u8; KEY_BYTES],
        provider: &[u8; KEY_BYTES],
        parties: &Parties,
        request: &Request,
    ) -> Result<(Self, Vec<u8>), SealError> {
        let prologue = parties.prologue();
        let mut state = build(private, &prologue, Some(provider))?;
        let mut message = vec![0; MAX_SEAL_BYTES];
        let length = state.write_message(&request.encode(), &mut message).map_err(|_| SealError::Unusable)?;
        message.truncate(length);
        Ok((Self(state), message))
    }

    /// Reads the provider's answer; and what seals and opens what follows.
    ///
    /// # Errors
    /// The answer does not open.
    pub fn finish(mut self, message: &[u8]) -> Result<(Answer, Sealer, Unsealer), SealError> {
        let payload = read(&mut self.0, message)?;
        let answer = Answer::decode(&payload)?;
        let (to_provider, to_opener) = self.0.dangerously_get_raw_split();
        let seal = crypto::aes_key(&to_provider).zip(crypto::aes_key(&to_opener));
        let (seal, open) = seal.ok_or(SealError::Unusable)?;
        Ok((answer, Sealer::new(seal), Unsealer::new(open)))
    }
}

/// The provider's end, the first message read.
pub struct Responder(HandshakeState);

impl Responder {
    /// With the provider's private key and the message of an OPEN; what it asks for, and the opener's public key.
    ///
    /// # Errors
    /// The message does not open, or is malformed.
    pub fn read(
        private: &[u8; KEY_BYTES],
        parties: &Parties,
        message: &[u8],
    ) -> Result<(Self, Request, [u8; KEY_BYTES]), SealError> {
        let prologue = parties.prologue();
        let mut state = build(private, &prologue, None)?;
        let payload = read(&mut state, message)?;
        let opener = state.get_remote_static().and_then(|key| key.try_into().ok());
        Ok((Self(state), Request::decode(&payload)?, opener.ok_or(SealError::DoesNotOpen)?))
    }

    /// The second message; and what seals and opens what follows.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn answer(mut self, answer: &Answer) -> Result<(Vec<u8>, Sealer, Unsealer), SealError> {
        let mut message = vec![0; MAX_SEAL_BYTES];
        let length = self.0.write_message(&answer.encode(), &mut message).map_err(|_| SealError::Unusable)?;
        message.truncate(length);
        let (to_provider, to_opener) = self.0.dangerously_get_raw_split();
        let seal = crypto::aes_key(&to_opener).zip(crypto::aes_key(&to_provider));
        let (seal, open) = seal.ok_or(SealError::Unusable)?;
        Ok((message, Sealer::new(seal), Unsealer::new(open)))
    }
}

impl fmt::Debug for Initiator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Initiator")
    }
}

impl fmt::Debug for Responder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Responder")
    }
}

fn build(
    private: &[u8],
    prologue: &[u8],
    responder: Option<&[u8; KEY_BYTES]>,
) -> Result<HandshakeState, SealError> {
    let params = PARAMS.clone().ok_or(SealError::Unusable)?;
    let builder = Builder::with_resolver(params, Box::new(Resolver))
        .local_private_key(private)
        .and_then(|builder| builder.prologue(prologue));
    let built = match responder {
        Some(key) => {
            builder.and_then(|builder| builder.remote_public_key(key)).and_then(Builder::build_initiator)
        }
        None => builder.and_then(Builder::build_responder),
    };
    built.map_err(|_| SealError::Unusable)
}

fn read(state: &mut HandshakeState, message: &[u8]) -> Result<Vec<u8>, SealError> {
    if message.len() > MAX_SEAL_BYTES {
        return Err(SealError::DoesNotOpen);
    }
    let mut payload = vec![0; message.len()];
    let length = state.read_message(message, &mut payload).map_err(|_| SealError::DoesNotOpen)?;
    payload.truncate(length);
    Ok(payload)
}

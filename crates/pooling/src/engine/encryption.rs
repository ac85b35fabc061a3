//! Whether a client speaks TLS, and what becomes of one that should.

use super::Engine;
use crate::client::{ClientState, Login};
use crate::close_cause::CloseCause;
use crate::connection::ClientId;
use crate::events::EventKind;
use crate::seam::{ClientAddress, Transport};
use crate::texts;
use settings::pooler::SslMode;

impl Engine {
    /// A client asks for TLS. True if another first packet may follow.
    pub(super) fn on_ssl_request(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        declined: u8,
    ) -> bool {
        let is_offered = self.offers_tls(id);
        let Some(client) = self.clients.find_mut(id) else { return false };
        if client.has_tls {
            self.break_protocol(transport, id, "SSL req inside SSL");
            return false;
        }
        if !is_offered {
            return self.decline_encryption(transport, id, declined);
        }
        if !client.held.is_empty() {
            // Somebody may have put it there who cannot read what comes next (CVE-2021-23214).
            self.break_protocol(transport, id, "received unencrypted data after SSL request");
            return false;
        }
        client.has_tls = true;
        transport.send(id.into(), &[b"S"]);
        transport.start_tls(id, &[]);
        false
    }

    /// Encryption of that kind is not to be had here: another first packet may follow.
    pub(super) fn decline_encryption(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        declined: u8,
    ) -> bool {
        if let Some(client) = self.clients.find_mut(id) {
            client.state = ClientState::Login(Box::new(Login::FirstPacket { declined: declined + 1 }));
        }
        transport.send(id.into(), &[b"N"]);
        true
    }

    /// The first bytes are a TLS handshake. True if there is no TLS here, so that they are to be refused.
    pub(super) fn on_direct_tls(&mut self, transport: &mut impl Transport, id: ClientId) -> bool {
        if !self.offers_tls(id) {
            return true;
        }
        let Some(client) = self.clients.find_mut(id) else { return false };
        client.has_tls = true;
        let begun = std::mem::take(&mut client.held);
        transport.start_tls(id, &begun);
        false
    }

    /// True if the client came without TLS where that is demanded; it has been refused.
    pub(super) fn refuse_plain(&mut self, transport: &mut impl Transport, id: ClientId) -> bool {
        let Some(client) = self.clients.find(id) else { return true };
        let is_network = matches!(client.address, ClientAddress::Tcp { .. });
        let is_refused =
            self.config.general.client_tls.mode >= SslMode::Require && is_network && !client.has_tls;
        if is_refused {
            self.totals.logins_refused += 1;
            self.record(None, EventKind::LoginRefused);
            let farewell = texts::fatal(texts::NOT_AUTHORIZED, "SSL required");
            self.dismiss_client(transport, id, &farewell, "SSL required");
        }
        is_refused
    }

    /// A client's TLS is broken.
    pub(super) fn client_broken(&mut self, transport: &mut impl Transport, id: ClientId, reason: &str) {
        let Some(client) = self.clients.find(id) else { return };
        if client.pool.is_none() && self.config.general.log_disconnections {
            // Who fails before the login leaves no other trace, and whoever set up the certificates wants to know.
            tracing::info!(address = ?client.address, "closing because: {reason}");
        }
        self.totals.protocol_errors += 1;
        self.client_gone(transport, id, reason);
    }

    /// New connections to servers are made in another way: those there are give way to such, when they are free.
    pub fn retire_all_servers(&mut self, transport: &mut impl Transport) {
        let servers = self.servers.ids();
        self.retire_servers(transport, servers, CloseCause::ConfigurationChanged);
    }

    /// As PostgreSQL, not over a Unix socket.
    fn offers_tls(&self, id: ClientId) -> bool {
        let address = self.clients.find(id).map(|client| client.address);
        self.config.general.client_tls.mode != SslMode::Disable
            && matches!(address, Some(ClientAddress::Tcp { .. }))
    }
}

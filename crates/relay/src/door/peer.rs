//! From a connection between two relays to a link: each has shown the other that it is a relay of this network.
//!
//! The one that was dialled shows it by TLS; the one that dials shows its certificate, and signs keying material of the
//! connection with that certificate's key. So no client is ever asked for a certificate.

use super::guest::Guest;
use super::{Door, Entered, Failed, TLS_LIMIT};
use crate::elsewhere::Introduced;
use crate::hub::Hub;
use clock::unix_ms;
use link::message::{Peer, Peered, Refuse};
use link::{Code, HEADER_BYTES, HELLO_LIMIT, Kind, PEER_ALPN};
use rustls::pki_types::{CertificateDer, ServerName};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tls::TlsSession;
use tokio::net::TcpStream;
use tokio::time::timeout;
use trust::{CertificateRole, NetworkId, PEER_EXPORTER_LABEL, PeerClaims, RelayId, RoleCertificate};

/// The TCP connection to another relay must stand within this time.
const DIAL_LIMIT: Duration = Duration::from_secs(5);

/// A relay that may come in, or that was dialled.
pub(crate) struct AdmittedPeer {
    pub socket: TcpStream,
    pub tls: TlsSession,
    /// What came behind its first frame.
    pub rest: Vec<u8>,
    pub who: Introduced,
}

/// Why another relay was not reached.
#[derive(Debug)]
pub(crate) struct NotReached(String);

impl fmt::Display for NotReached {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Door {
    /// Another relay has dialled; TLS stands.
    pub(super) async fn enter_peer(&self, mut guest: Guest) -> Result<Entered, Failed> {
        let waited = timeout(HELLO_LIMIT, guest.first(Kind::Peer)).await;
        let bytes = waited.map_err(|_| Failed("no hello of a relay came"))??;
        let exported = guest.tls.export(PEER_EXPORTER_LABEL).ok_or(Failed("nothing is exported"))?;
        let payload = guest.plain[HEADER_BYTES..bytes].to_vec();
        let rest = guest.plain.split_off(bytes);
        let peer = Peer::decode(&payload).map_err(|_| Failed("a malformed hello of a relay"))?;
        let network = self.keys.borrow().network;
        let claims = PeerClaims { network, relay: RelayId(peer.relay), epoch: peer.epoch };
        let chain: Vec<_> = peer.chain.iter().map(|certificate| CertificateDer::from(*certificate)).collect();
        let refused = if peer.version != link::VERSION {
            Some((Code::Version, "this relay speaks version 1"))
        } else if let Err(error) = claims.verify(&chain, peer.proof, &exported, unix_ms()) {
            tracing::info!(%error, relay = %claims.relay, address = peer.address, "a relay is refused");
            Some((Code::ProofInvalid, "not a relay of this network"))
        } else {
            None
        };
        if let Some((code, cause)) = refused {
            self.hub.counters.refuse(code);
            Refuse { code, cause: cause.into(), retry_after: None }.write(0, &mut guest.out);
            // Whoever was refused may not listen.
            let _ = timeout(HELLO_LIMIT, guest.send()).await;
            return Err(Failed("a stranger asked to be a relay"));
        }
        let address = self.hub.config.reached_at();
        let Hub { relay, epoch, .. } = &*self.hub;
        Peered { version: link::VERSION, relay: relay.0, epoch: *epoch, address: &address }
            .write(&mut guest.out);
        let sent = timeout(HELLO_LIMIT, guest.send()).await;
        sent.map_err(|_| Failed("the relay takes nothing"))?.map_err(|_| Failed("io"))?;
        let who = Introduced {
            relay: claims.relay,
            epoch: claims.epoch,
            address: peer.address.into(),
            dialled: false,
        };
        let Guest { socket, tls, .. } = guest;
        Ok(Entered::Peer(AdmittedPeer { socket, tls, rest, who }))
    }
}

/// Dials another relay (`host:port`), and shows it this one's certificate.
pub(crate) async fn dial(
    hub: &Hub,
    network: NetworkId,
    certificate: &RoleCertificate,
    address: &str,
) -> Result<AdmittedPeer, NotReached> {
    let failed = |what: &str| NotReached(what.to_owned());
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned()).map_err(|_| failed("no name of a host"))?;
    let config = trust::client_config(network, CertificateRole::Relay, &[PEER_ALPN]);
    let mut config = Arc::unwrap_or_clone(config.map_err(|error| NotReached(error.to_string()))?);
    config.key_log = tls::exporting();
    let tls = TlsSession::connect(Arc::new(config), name).map_err(|error| NotReached(error.to_string()))?;
    let dialled = timeout(DIAL_LIMIT, TcpStream::connect(address)).await;
    let socket = dialled
        .map_err(|_| failed("no connection in time"))?
        .map_err(|error| NotReached(format!("no connection: {error}")))?;
    // A socket without it works too, only slower.
    let _ = socket.set_nodelay(true);
    let mut guest = Guest::new(socket, tls);
    let shaken = timeout(TLS_LIMIT, guest.begin()).await;
    shaken.map_err(|_| failed("no TLS in time"))?.map_err(|error| NotReached(format!("TLS: {error}")))?;
    let exported = guest.tls.export(PEER_EXPORTER_LABEL).ok_or_else(|| failed("nothing is exported"))?;
    let claims = PeerClaims { network, relay: hub.relay, epoch: hub.epoch };
    let proof = claims.sign(certificate, &exported).map_err(|error| NotReached(error.to_string()))?;
    let own_address = hub.config.reached_at();
    Peer {
        version: link::VERSION,
        relay: hub.relay.0,
        epoch: hub.epoch,
        address: &own_address,
        chain: certificate.chain().iter().map(AsRef::as_ref).collect(),
        proof: &proof,
    }
    .write(&mut guest.out);
    let answering = async {
        guest.send().await.map_err(|_| Failed("io"))?;
        guest.first(Kind::Peered).await
    };
    let bytes = timeout(HELLO_LIMIT * 2, answering)
        .await
        .map_err(|_| failed("no answer in time"))?
        .map_err(|Failed(why)| NotReached(format!("no answer: {why}")))?;
    let payload = guest.plain[HEADER_BYTES..bytes].to_vec();
    let rest = guest.plain.split_off(bytes);
    let peered = Peered::decode(&payload).map_err(|error| NotReached(error.to_string()))?;
    let who = Introduced {
        relay: RelayId(peered.relay),
        epoch: peered.epoch,
        address: peered.address.into(),
        dialled: true,
    };
    let Guest { socket, tls, .. } = guest;
    Ok(AdmittedPeer { socket, tls, rest, who })
}

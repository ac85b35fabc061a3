//! Whether a relay answers, as seen from here.

use crate::connect::greet;
use crate::error::LinkError;
use std::io;
use std::time::Duration;
use tokio::time::timeout;
use trust::NetworkId;

/// What an attempt to reach a relay has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A relay of this network answers.
    Answers,
    /// Its host says that nobody listens there.
    Refused,
    /// Nothing came back, or it was nobody of this network.
    Silent,
}

/// Looks whether the relay at `address` (`host:port`) answers within `limit`. A TCP connection alone proves nothing: the kernel
/// takes it also for a process that stands still. So one TLS handshake is asked for, and no more.
pub async fn reach(address: &str, network: NetworkId, limit: Duration) -> Reach {
    match timeout(limit, greet(address, network)).await {
        // A relay that asks to wait before TLS is overrun, and there.
        Ok(Ok(()) | Err(LinkError::Wait(_))) => Reach::Answers,
        Ok(Err(LinkError::Io { what: LinkError::CONNECTING, error }))
            if error.kind() == io::ErrorKind::ConnectionRefused =>
        {
            Reach::Refused
        }
        Ok(Err(_)) | Err(_) => Reach::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tls::{TlsSession, TlsStream};
    use tokio::net::TcpListener;
    use trust::{CertificateRole, RootKey};

    const LIMIT: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_relay_answers_a_closed_port_refuses_and_all_else_is_silent() {
        let root = RootKey::generate().unwrap();
        let names = ["127.0.0.1".to_owned()];
        let certificate = root.issue(CertificateRole::Relay, &names, clock::unix_ms()).unwrap();
        let config = trust::server_config(&certificate, &[link::ALPN]).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let session = TlsSession::accept(Arc::clone(&config), true).unwrap();
                let mut stream = TlsStream::new(socket, session);
                let _ = stream.handshake().await;
            }
        });
        assert_eq!(reach(&address, root.network(), LIMIT).await, Reach::Answers);
        // One of another network, where this one was.
        let other = RootKey::generate().unwrap().network();
        assert_eq!(reach(&address, other, LIMIT).await, Reach::Silent);
        server.abort();
        let _ = server.await;
        assert_eq!(reach(&address, root.network(), LIMIT).await, Reach::Refused);
        // A process that stands still: the kernel takes the connection.
        let still = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = still.local_addr().unwrap().to_string();
        assert_eq!(reach(&address, root.network(), Duration::from_millis(300)).await, Reach::Silent);
    }
}

//! TLS for a client that knows none: what comes in clear text on a port of its own goes on encrypted.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Bytes of one read.
const READ_BYTES: usize = 16 << 10;

/// Listens until it is dropped.
pub(crate) struct Tunnel {
    pub(crate) address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Tunnel {
    /// Leads to a server that offers TLS with a certificate of this authority (PEM).
    pub(crate) async fn open(server: SocketAddr, authority: &str) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = Arc::new(builder.unwrap().with_root_certificates(roots).with_no_client_auth());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let config = config.clone();
                // However it ends, both sides are closed, which is what they have to cope with.
                tokio::spawn(async move { carry(client, server, config).await });
            }
        });
        Ok(Self { address, accepting })
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// One connection, up to its end on either side.
async fn carry(mut client: TcpStream, server: SocketAddr, config: Arc<ClientConfig>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut server = TcpStream::connect(server).await?;
    server.set_nodelay(true)?;
    server.write_all(&SSL_REQUEST).await?;
    assert_eq!(server.read_u8().await?, b'S', "no TLS there");
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
    let (mut clear, mut encrypted) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
    loop {
        let mut outgoing = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut outgoing)?;
        }
        server.write_all(&outgoing).await?;
        tokio::select! {
            read = client.read(&mut clear), if !tls.is_handshaking() => match read {
                Ok(0) => return Ok(()),
                Ok(count) => tls.writer().write_all(&clear[..count])?,
                Err(error) => {
                    // A reset goes on as a reset.
                    rustix::net::sockopt::set_socket_linger(&server, Some(std::time::Duration::ZERO))?;
                    return Err(error);
                }
            },
            read = server.read(&mut encrypted) => {
                let mut came = &encrypted[..read?];
                if came.is_empty() {
                    return Ok(());
                }
                while !came.is_empty() {
                    tls.read_tls(&mut came)?;
                    let state = tls.process_new_packets().map_err(io::Error::other)?;
                    let mut plain = vec![0; state.plaintext_bytes_to_read()];
                    tls.reader().read_exact(&mut plain)?;
                    client.write_all(&plain).await?;
                    if state.peer_has_closed() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

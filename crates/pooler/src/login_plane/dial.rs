//! Finding a server and connecting to it.

use super::failure::Failure;
use super::stream::ServerStream;
use settings::pooler::ServerAddress;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

/// Names resolved at once. A resolver that does not answer keeps its thread for many seconds, longer than any caller
/// waits, so that the threads are what must be bounded.
pub(super) const MAX_LOOKUPS: usize = 8;
/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 16;

/// Resolves host names on threads of their own.
#[derive(Clone, Debug)]
pub(super) struct Resolver {
    permits: Arc<Semaphore>,
}

impl Default for Resolver {
    fn default() -> Self {
        Self { permits: Arc::new(Semaphore::new(MAX_LOOKUPS)) }
    }
}

/// Connects within `limit`. Of several addresses of a name, `rotation` chooses the first to be tried, and each gets
/// its share of the time.
pub(super) async fn dial(
    address: &ServerAddress,
    resolver: &Resolver,
    rotation: u64,
    limit: Duration,
) -> Result<ServerStream, Failure> {
    match address {
        ServerAddress::Unix { directory, port } => {
            let path = Path::new(directory).join(format!(".s.PGSQL.{port}"));
            Ok(ServerStream::Unix(UnixStream::connect(path).await.map_err(Failure::Connect)?))
        }
        ServerAddress::Tcp { host, port } => {
            let deadline = Instant::now() + limit;
            let addresses = resolver.resolve(host, *port).await?;
            let count = addresses.len();
            let start = usize::try_from(rotation).unwrap_or_default() % count.max(1);
            let mut last = Failure::NoAddress(format!("{host} has no address"));
            for index in 0..count {
                let left = u32::try_from(count - index).unwrap_or(1);
                let share = deadline.saturating_duration_since(Instant::now()) / left;
                last = match timeout(share, TcpStream::connect(addresses[(start + index) % count])).await {
                    Ok(Ok(stream)) => return Ok(ServerStream::Tcp(stream)),
                    Ok(Err(error)) => Failure::Connect(error),
                    Err(_) => Failure::ConnectTimeout,
                };
            }
            Err(last)
        }
    }
}

impl Resolver {
    async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        let no_address =
            |error: &dyn std::fmt::Display| Failure::NoAddress(format!("cannot resolve {host}: {error}"));
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|error| no_address(&error))?;
        let name = host.to_owned();
        let lookup = tokio::task::spawn_blocking(move || {
            // Until the system answers, even if the caller has given up.
            let _permit = permit;
            let found = (name.as_str(), port).to_socket_addrs()?;
            Ok::<_, std::io::Error>(found.take(MAX_ADDRESSES).collect::<Vec<_>>())
        });
        match lookup.await {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(no_address(&error)),
            Err(error) => Err(no_address(&error)),
        }
    }
}

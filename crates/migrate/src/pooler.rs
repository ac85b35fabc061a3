//! How many clients wait at a pooler: from its metrics page.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest wait for the page.
const LIMIT: Duration = Duration::from_secs(2);
/// Longest page.
const MAX_BYTES: u64 = 4 << 20;
const METRIC: &str = "holdfast_pooler_clients_waiting{";

/// Clients that wait for a server; none if the page cannot be read.
pub(crate) async fn waiters(address: SocketAddr) -> Option<f64> {
    let page = timeout(LIMIT, read(address)).await.ok()?.ok()?;
    Some(sum(&page))
}

async fn read(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: pooler\r\nconnection: close\r\n\r\n").await?;
    let mut page = Vec::new();
    stream.take(MAX_BYTES).read_to_end(&mut page).await?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn sum(page: &str) -> f64 {
    let lines = page.lines().filter(|line| line.starts_with(METRIC));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_are_summed_over_pools() {
        let page = "holdfast_pooler_clients_waiting{database=\"a b\",user=\"u\"} 3\r\n\
                    holdfast_pooler_clients_waiting{database=\"c\",user=\"u\"} 4\nholdfast_pooler_clients 90\n";
        assert!((sum(page) - 7.0).abs() < f64::EPSILON);
    }
}

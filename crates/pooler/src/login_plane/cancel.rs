//! Cancel requests: a connection each, whose end says that the server has acted on it.

use super::dial::{Resolver, dial};
use super::failure::Failure;
use super::stream::ServerStream;
use crate::tls::ToServers;
use pgwire::startup::cancel_request;
use pooling::seam::CancelQuery;
use settings::pooler::ServerAddress;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Sends it and waits until the server closes the connection, all within its limit. What fails is only logged: the
/// query then runs on, and the engine drains its answer or closes the connection.
pub(super) async fn send(request: &CancelQuery, tls: Option<&ToServers>, resolver: &Resolver) {
    let error = match timeout(request.limit, attempt(request, tls, resolver)).await {
        Ok(Ok(())) => return,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::TimedOut(request.limit),
    };
    tracing::warn!(%error, address = ?request.address, process_id = request.process_id, "cancel request failed");
}

async fn attempt(request: &CancelQuery, tls: Option<&ToServers>, resolver: &Resolver) -> Result<(), Failure> {
    let mut stream = match request.peer {
        // Another address of the same name may be another server.
        Some(peer) => ServerStream::Tcp(TcpStream::connect(peer).await.map_err(Failure::Connect)?),
        None => dial(&request.address, resolver, 0, request.limit).await?,
    };
    if let (Some(tls), ServerAddress::Tcp { host, .. }) = (tls, &request.address) {
        stream = stream.start_tls(tls, host).await?;
    }
    stream
        .write_all(&cancel_request(request.process_id, &request.secret_key))
        .await
        .map_err(Failure::Lost)?;
    // PostgreSQL answers with nothing but the end; some proxies reset instead.
    let mut ignored = [0; 64];
    while matches!(stream.read(&mut ignored).await, Ok(1..)) {}
    Ok(())
}

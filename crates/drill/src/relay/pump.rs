//! One connection through the relay.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::{Counters, Faults};

/// Bytes read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Chunks on their way in one direction; further ones stay in the sender's socket.
const CHUNKS_IN_FLIGHT: usize = 16;

/// Carries a connection until both directions have ended, or it is cut.
pub(super) async fn connection(
    mut client: TcpStream,
    target: SocketAddr,
    faults: watch::Receiver<Faults>,
    counters: &Counters,
) {
    let now = faults.borrow().clone();
    let mut cutter = faults.clone();
    let mut backend = None;
    let whole = async {
        if now.refuse_new {
            return reset(&client);
        }
        if now.swallow_new {
            // Reads until the client leaves, so that its sends never block.
            return tokio::io::copy(&mut client, &mut tokio::io::sink()).await.map(drop);
        }
        tokio::time::sleep(now.delay_new).await;
        thawed(&mut faults.clone()).await;
        let backend = backend.insert(TcpStream::connect(target).await?);
        client.set_nodelay(true)?;
        backend.set_nodelay(true)?;
        let (from_client, to_client) = client.split();
        let (from_backend, to_backend) = backend.split();
        let up =
            one_way(from_client, to_backend, faults.clone(), |faults| faults.delay_up, &counters.bytes_up);
        let down = one_way(
            from_backend,
            to_client,
            faults.clone(),
            |faults| faults.delay_down,
            &counters.bytes_down,
        );
        tokio::try_join!(up, down).map(drop)
    };
    let cuts = now.cuts;
    let outcome = tokio::select! {
        outcome = whole => outcome.map(|()| false),
        cut = cutter.wait_for(|faults| faults.cuts > cuts) => Ok(cut.is_ok_and(|faults| faults.cut_by_reset)),
    };
    // A failure of one side (a reset, mostly) is passed on to the other as a reset.
    if outcome.unwrap_or(true) {
        for end in [Some(&client), backend.as_ref()].into_iter().flatten() {
            // If this fails, the end is orderly instead.
            let _ = reset(end);
        }
    }
}

/// One direction: reads, waits out delay and freeze, writes, and at the end passes the end on.
async fn one_way(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut faults: watch::Receiver<Faults>,
    delay: fn(&Faults) -> Duration,
    counter: &AtomicU64,
) -> io::Result<()> {
    let (sender, mut receiver) = mpsc::channel::<(Instant, Vec<u8>)>(CHUNKS_IN_FLIGHT);
    let read = async move {
        loop {
            let mut chunk = Vec::with_capacity(CHUNK_BYTES);
            let count = from.read_buf(&mut chunk).await?;
            // An empty chunk is the end; it waits its turn like the bytes before it.
            if sender.send((Instant::now(), chunk)).await.is_err() || count == 0 {
                return Ok(());
            }
        }
    };
    let write = async move {
        while let Some((arrived, chunk)) = receiver.recv().await {
            let due = arrived + delay(&faults.borrow());
            if due > Instant::now() {
                tokio::time::sleep_until(due).await;
            }
            thawed(&mut faults).await;
            if chunk.is_empty() {
                return to.shutdown().await;
            }
            to.write_all(&chunk).await?;
            counter.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    };
    tokio::try_join!(read, write).map(drop)
}

async fn thawed(faults: &mut watch::Receiver<Faults>) {
    // An error means that the relay is being dropped, which ends this task too.
    let _ = faults.wait_for(|faults| !faults.frozen).await;
}

/// Makes closing a reset.
fn reset(stream: &TcpStream) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(stream, Some(Duration::ZERO))?)
}

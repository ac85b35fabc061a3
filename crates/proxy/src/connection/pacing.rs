//! A stream until its end: spliced, or counted out if the account has a rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::client::Client;
use super::{Gone, Proxy};
use crate::accounts::Account;
use crate::control::Control;
use crate::exits::{ExitStream, Exits};
use crate::opener::Opened;
use clock::Clock;

/// Bytes of one copy.
pub(super) const COPY_BYTES: usize = 16 * 1024;

/// Carries a stream until it ends.
pub(super) async fn carry<E: Exits, C: Control>(
    proxy: &Arc<Proxy<E, C>>,
    client: &mut Client,
    opened: Opened<E::Stream>,
    account: &Arc<Account>,
) -> Result<(), Gone> {
    let (socket, mut first) = client.take_parts()?;
    // A stream that only waits owns no buffer.
    first.shrink_to_fit();
    let Opened { stream, lease } = opened;
    let idle = proxy.config.idle();
    if account.gate().is_paced() {
        let pacer = Pacer::new(account, proxy.opener.clock);
        tokio::select! {
            () = copy(socket, stream, &first, &pacer) => {}
            () = pacer.idle_for(idle) => {}
        }
    } else {
        stream.splice(socket, &first, idle).await;
    }
    drop(lease);
    Ok(())
}

/// Counts bytes out at the account's rate, and sees when nothing moves any more.
pub(super) struct Pacer<'account> {
    account: &'account Account,
    clock: Clock,
    moves: AtomicU64,
}

impl<'account> Pacer<'account> {
    pub(super) fn new(account: &'account Arc<Account>, clock: Clock) -> Self {
        Self { account, clock, moves: AtomicU64::new(0) }
    }

    /// So many bytes have come: waits until they are paid for.
    pub(super) async fn passed(&self, bytes: usize) {
        self.moves.fetch_add(1, Ordering::Relaxed);
        let wait = {
            let mut gate = self.account.gate();
            if gate.is_paced() { gate.passed(bytes, self.clock.now()) } else { Duration::ZERO }
        };
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }

    /// Waits until nothing has passed for a whole `idle`.
    pub(super) async fn idle_for(&self, idle: Duration) {
        let mut seen = self.moves.load(Ordering::Relaxed);
        loop {
            sleep(idle).await;
            let moves = self.moves.load(Ordering::Relaxed);
            if moves == seen {
                return;
            }
            seen = moves;
        }
    }
}

async fn copy(mut socket: TcpStream, stream: impl ExitStream, first: &[u8], pacer: &Pacer<'_>) {
    let (from_exit, mut to_exit) = split(stream);
    pacer.passed(first.len()).await;
    if to_exit.write_all(first).await.is_err() {
        return;
    }
    let (from_client, to_client) = socket.split();
    // The first error ends both.
    let _ = tokio::try_join!(one_way(from_client, to_exit, pacer), one_way(from_exit, to_client, pacer));
}

async fn one_way(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    pacer: &Pacer<'_>,
) -> std::io::Result<()> {
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        pacer.passed(count).await;
        to.write_all(buffer.get(..count).unwrap_or_default()).await?;
    }
}

//! Password hashing on threads that may be busy for milliseconds.

use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};

/// Hashes computed at once: a storm of logins must not take the processor away from the reactor.
const MAX_HASHES: usize = 2;

static PERMITS: Semaphore = Semaphore::const_new(MAX_HASHES);

/// Runs it there.
///
/// # Errors
/// It panicked, or the process is stopping.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    let permit = PERMITS.acquire().await;
    spawn_blocking(move || {
        // Until it is done, even if the caller has given up.
        let _permit = permit;
        work()
    })
    .await
}

//! Hints: "there is something to read". They carry no data, and many are as good as one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::cache::Cache;
use crate::names::Channel;

/// Channels that one process listens to.
pub const MAX_CHANNELS: usize = 64;

/// Between two attempts to publish one hint, ms.
const LEAST_REST_MS: u64 = 100;

/// A subscription. Dropping the last one of a channel ends it.
#[derive(Clone, Debug)]
pub struct Hints {
    heard: watch::Receiver<u64>,
    _listening: Arc<Listening>,
}

impl Hints {
    pub(crate) fn new(listening: Arc<Listening>) -> Self {
        let mut heard = listening.heard.subscribe();
        // Whatever happened before it listened has to be read once.
        heard.mark_changed();
        Self { heard, _listening: listening }
    }

    /// Waits for a hint since the last one that was taken here; the first comes at once. Dropping the future loses nothing.
    pub async fn heard(&mut self) {
        // The sender lives as long as this.
        let _ = self.heard.changed().await;
    }
}

/// A channel that is listened to.
#[derive(Debug)]
pub(crate) struct Listening {
    heard: watch::Sender<u64>,
    task: Option<AbortHandle>,
}

impl Listening {
    pub(crate) fn new(heard: watch::Sender<u64>, task: Option<AbortHandle>) -> Self {
        Self { heard, task }
    }

    pub(crate) fn hint(&self) {
        hint(&self.heard);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// One more.
pub(crate) fn hint(heard: &watch::Sender<u64>) {
    heard.send_modify(|count| *count = count.wrapping_add(1));
}

/// Publishes hints in the background. Clones share it; it ends with the last of them.
#[derive(Clone, Debug)]
pub struct Publisher(Arc<Publishing>);

#[derive(Debug)]
struct Publishing {
    wanted: Arc<Notify>,
    task: AbortHandle,
}

impl Publisher {
    pub(crate) fn start(cache: Cache, channel: Channel) -> Self {
        let wanted = Arc::new(Notify::new());
        let notified = Arc::clone(&wanted);
        let task = tokio::spawn(async move {
            loop {
                // Holds one notification at most: those that come while one is under way are one.
                notified.notified().await;
                while let Err(error) = cache.publish(channel).await {
                    tracing::debug!(%channel, kind = error.kind(), "a hint was not published: {error}");
                    let Some(wait_ms) = error.retry_after_ms() else { break };
                    // One hint is owed, however many changes there are meanwhile.
                    sleep(Duration::from_millis(wait_ms.max(LEAST_REST_MS))).await;
                }
            }
        });
        Self(Arc::new(Publishing { wanted, task: task.abort_handle() }))
    }

    /// Something has changed. Returns at once. What cannot be published is tried again when the cache may be back.
    pub fn notify(&self) {
        self.0.wanted.notify_one();
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

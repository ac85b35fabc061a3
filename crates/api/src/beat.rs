//! That this api lives, which documents it holds, and which keys it could sign with: a new key waits for those who live.

use std::time::Duration;

use clock::unix_ms;
use store::{ApiBeat, Store};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::documents::Documents;

/// How often.
const BEAT_EVERY: Duration = Duration::from_secs(5);
/// A beat that is not written within this time is left to the next one.
const BEAT_LIMIT: Duration = Duration::from_secs(10);
/// How long the last word may take.
const FAREWELL_LIMIT: Duration = Duration::from_secs(1);

/// One start of an api.
pub(crate) struct Beating {
    api: Uuid,
    started_at_ms: u64,
}

impl Beating {
    pub(crate) fn new() -> Self {
        Self { api: Uuid::new_v4(), started_at_ms: unix_ms() }
    }

    /// Beats on its time, and whenever what it holds has changed. Never ends.
    pub(crate) async fn keep(&self, store: &Store, documents: &Documents) {
        let mut changes = documents.book().watch();
        let mut failing = false;
        loop {
            changes.mark_unchanged();
            let known = documents.book().known();
            let beat = ApiBeat {
                api: self.api,
                started_at_ms: self.started_at_ms,
                ring: known.ring.number(),
                revocations: known.revocations.number(),
                holds: documents.signer.holds(),
                signs_with: documents.signer.key().map(|key| key.id()),
            };
            let beaten = match timeout(BEAT_LIMIT, store.beat_api(beat)).await {
                Ok(beaten) => beaten.map_err(|error| error.to_string()),
                Err(_) => Err("no answer in time".to_owned()),
            };
            match beaten {
                Ok(()) => failing = false,
                Err(error) if !std::mem::replace(&mut failing, true) => {
                    tracing::warn!(error, "the api's beat was not written");
                }
                Err(_) => {}
            }
            tokio::select! {
                () = sleep(BEAT_EVERY) => {}
                changed = changes.changed(), if !failing => if changed.is_err() { return },
            }
        }
    }

    /// It ends: nobody has to wait for it.
    pub(crate) async fn end(&self, store: &Store) {
        if let Ok(Err(error)) = timeout(FAREWELL_LIMIT, store.end_api(self.api)).await {
            tracing::debug!(%error, "the api's end was not written");
        }
    }
}

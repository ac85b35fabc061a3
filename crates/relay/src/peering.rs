//! Keeps a link to each other relay of the network.
//!
//! Who the others are is known from the settings, from the database as long as it answers, and from this disk otherwise. Two relays
//! dial each other; which link is kept is `elsewhere`'s to say. No database is asked for anything else.

use crate::door::dial;
use crate::elsewhere::MAX_PEERS;
use crate::hub::{Connection, Hub};
use crate::records::Records;
use link::{Comeback, Pace};
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{sleep, timeout};
use trust::{RelayId, RoleCertificate};

/// Addresses of the last start, a line each.
const FILE: &str = "peers";
/// More than any file of ours holds.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// How often the records are asked who the others are, and a random part of it besides.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// An answer that has not come by then is asked for again.
const LOOK_LIMIT: Duration = Duration::from_secs(10);
/// How fast a relay comes back to another.
const PACE: Pace = Pace {
    base: Duration::from_millis(500),
    cap: Duration::from_secs(15),
    stable_after: Duration::from_secs(10),
};

pub(crate) struct Peering<R> {
    hub: Rc<Hub>,
    certificate: watch::Receiver<Arc<RoleCertificate>>,
    records: Arc<R>,
    file: PathBuf,
}

/// The tasks that keep links, by address; they end with it.
#[derive(Default)]
struct Keepers(HashMap<String, JoinHandle<()>>);

impl Drop for Keepers {
    fn drop(&mut self) {
        self.0.values().for_each(JoinHandle::abort);
    }
}

impl<R: Records> Peering<R> {
    pub(crate) fn new(
        hub: &Rc<Hub>,
        certificate: watch::Receiver<Arc<RoleCertificate>>,
        records: Arc<R>,
    ) -> Self {
        let file = hub.config.state_folder.join(FILE);
        Self { hub: Rc::clone(hub), certificate, records, file }
    }

    /// Never ends.
    pub(crate) async fn run(self) {
        let mut keepers = Keepers::default();
        let mut named = self.read();
        self.keep(&mut keepers, &named);
        loop {
            match timeout(LOOK_LIMIT, self.records.relays()).await {
                Ok(Ok(relays)) if relays.is_empty() => {}
                Ok(Ok(relays)) => {
                    self.write(&named, &relays);
                    named = relays;
                }
                // The last that are known hold; the records' own trouble is told with the beat.
                Ok(Err(error)) => tracing::debug!(error, "who the other relays are is not known anew"),
                Err(_) => tracing::debug!("who the other relays are is not known in time"),
            }
            self.hub.elsewhere.borrow_mut().forget(self.hub.clock.now());
            self.keep(&mut keepers, &named);
            sleep(LOOK_INTERVAL + LOOK_INTERVAL.mul_f64(fastrand::f64() / 2.0)).await;
        }
    }

    /// One task for each address. A link that stands is not ended because its address is named no more.
    fn keep(&self, keepers: &mut Keepers, named: &[String]) {
        let own = self.hub.config.reached_at();
        let linked = self.hub.elsewhere.borrow().linked_addresses();
        let mut wanted: Vec<&String> = self.hub.config.peers.iter().chain(named).collect();
        wanted.retain(|address| **address != own);
        wanted.dedup();
        wanted.truncate(MAX_PEERS);
        keepers.0.retain(|address, keeper| {
            let stays = wanted.contains(&address) || linked.contains(address.as_str());
            if !stays {
                keeper.abort();
            }
            stays
        });
        for address in wanted {
            if !keepers.0.contains_key(address) && keepers.0.len() < 2 * MAX_PEERS {
                let keeping = keep_link(Rc::clone(&self.hub), self.certificate.clone(), address.clone());
                keepers.0.insert(address.clone(), spawn_local(keeping));
            }
        }
    }

    fn read(&self) -> Vec<String> {
        match disk::read_text(&self.file, MAX_FILE_BYTES) {
            Ok(text) => text.unwrap_or_default().lines().take(MAX_PEERS).map(str::to_owned).collect(),
            Err(error) => {
                tracing::warn!(%error, file = %self.file.display(), "which relays there were is not known");
                Vec::new()
            }
        }
    }

    fn write(&self, before: &[String], relays: &[String]) {
        let (mut before, mut relays) = (before.to_vec(), relays.to_vec());
        before.sort_unstable();
        relays.sort_unstable();
        if before == relays {
            return;
        }
        if let Err(error) = disk::replace(&self.file, relays.join("\n").as_bytes()) {
            tracing::warn!(%error, file = %self.file.display(), "the other relays' addresses are not kept");
        }
    }
}

/// Dials whenever there is no link; never ends, but for this relay's own address.
async fn keep_link(hub: Rc<Hub>, certificate: watch::Receiver<Arc<RoleCertificate>>, address: String) {
    let mut changed = hub.elsewhere_changed.subscribe();
    let mut comeback = Comeback::new();
    comeback.set_pace(PACE);
    let mut relay: Option<RelayId> = None;
    let mut failing = false;
    loop {
        changed.borrow_and_update();
        let linked = {
            let elsewhere = hub.elsewhere.borrow();
            elsewhere.is_linked_to(&address) || relay.is_some_and(|relay| elsewhere.is_linked(relay))
        };
        if linked {
            // The sender lives as long as the hub.
            let _ = changed.changed().await;
            continue;
        }
        let (network, shown) = (hub.keys.borrow().network, Arc::clone(&certificate.borrow()));
        match Box::pin(dial(&hub, network, &shown, &address)).await {
            Ok(admitted) if admitted.who.relay == hub.relay => return,
            Ok(admitted) => {
                failing = false;
                relay = Some(admitted.who.relay);
                comeback.connected(hub.clock.now());
                // In a task of its own: a link that stands outlives the wish for it.
                drop(spawn_local(Connection::serve_peer(Rc::clone(&hub), admitted)).await);
            }
            Err(error) => {
                // Once for each time that it begins to fail.
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, address, "another relay is not reached; it is tried again");
                }
            }
        }
        sleep(comeback.ended(None, fastrand::u64(..), hub.clock.now())).await;
    }
}

//! Which server a slot belongs to: always the one, or what the Cluster says.

mod map;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use overload::Backoff;
use redis::{Cmd, cmd};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::connect::Connector;
use super::node::{Node, Reply, unavailable};
use crate::CacheError;
use map::SlotMap;

/// How often the shape of a Cluster is read without a cause.
const READ_EVERY: Duration = Duration::from_secs(30);

/// Between two readings, whatever the cause.
const LEAST_PAUSE: Duration = Duration::from_millis(100);
const GREATEST_PAUSE: Duration = Duration::from_secs(5);

/// Times that one call is sent on.
const REDIRECTIONS: u32 = 4;

/// Servers of a Cluster.
const MAX_NODES: usize = 1_024;

#[derive(Clone)]
pub(super) enum Topology {
    Single(Arc<Node>),
    Cluster(Arc<Cluster>),
}

impl Topology {
    pub(super) fn single(address: String, connector: Arc<Connector>) -> Self {
        Self::Single(Arc::new(Node::start(address, connector)))
    }

    pub(super) fn cluster(seeds: Vec<String>, connector: Arc<Connector>, ask_limit: Duration) -> Self {
        let (shape, known) = watch::channel(None);
        let shared = Arc::new(Shared {
            seeds,
            connector,
            ask_limit,
            shape,
            nodes: Mutex::default(),
            wanted: Notify::new(),
        });
        let reader = tokio::spawn(Arc::clone(&shared).keep_read()).abort_handle();
        Self::Cluster(Arc::new(Cluster { shared, known, reader }))
    }

    pub(super) const fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    pub(super) async fn call(
        &self,
        slot: u16,
        command: &Cmd,
        until: Instant,
    ) -> Result<redis::Value, CacheError> {
        match self {
            Self::Single(node) => match node.call(command, false, until).await? {
                Reply::Value(value) => Ok(value),
                // It is one of a Cluster, and the configuration says that it is not.
                Reply::Moved(_) | Reply::Ask(_) => Err(CacheError::Refused { code: "MOVED".to_owned() }),
            },
            Self::Cluster(cluster) => cluster.call(slot, command, until).await,
        }
    }

    /// The address of a slot's server, as far as it is known by `until`.
    pub(super) async fn owner(&self, slot: u16, until: Instant) -> Result<String, CacheError> {
        match self {
            Self::Single(node) => Ok(node.address().to_owned()),
            Self::Cluster(cluster) => cluster.owner(slot, until).await,
        }
    }

    /// Somebody was told that a slot stands elsewhere.
    pub(super) fn moved(&self, slot: u16, to: &str) {
        if let Self::Cluster(cluster) = self {
            cluster.shared.moved(slot, to);
        }
    }

    /// What is known may be wrong.
    pub(super) fn doubt(&self) {
        if let Self::Cluster(cluster) = self {
            cluster.shared.wanted.notify_one();
        }
    }
}

/// A Cluster. Dropping the last one ends its task.
pub(super) struct Cluster {
    shared: Arc<Shared>,
    known: watch::Receiver<Shape>,
    reader: AbortHandle,
}

/// None before the first reading has ended; an empty map if it has failed.
type Shape = Option<Arc<SlotMap>>;

struct Shared {
    seeds: Vec<String>,
    connector: Arc<Connector>,
    ask_limit: Duration,
    shape: watch::Sender<Shape>,
    nodes: Mutex<HashMap<String, Arc<Node>>>,
    wanted: Notify,
}

impl Cluster {
    async fn call(&self, slot: u16, command: &Cmd, until: Instant) -> Result<redis::Value, CacheError> {
        let mut address = self.owner(slot, until).await?;
        let mut asking = false;
        for _ in 0..REDIRECTIONS {
            let node = self.shared.node(&address)?;
            match node.call(command, asking, until).await {
                Ok(Reply::Value(value)) => return Ok(value),
                Ok(Reply::Moved(to)) => {
                    (address, asking) = (elsewhere(&to, &address), false);
                    self.shared.moved(slot, &address);
                }
                Ok(Reply::Ask(to)) => (address, asking) = (elsewhere(&to, &address), true),
                Err(error) => {
                    self.shared.wanted.notify_one();
                    return Err(error);
                }
            }
        }
        Err(unavailable())
    }

    async fn owner(&self, slot: u16, until: Instant) -> Result<String, CacheError> {
        let mut known = self.known.clone();
        let shape = match timeout_at(until, known.wait_for(Option::is_some)).await {
            Err(_) => return Err(CacheError::Deadline { limit_ms: 0 }),
            Ok(shape) => shape.ok().and_then(|shape| shape.clone()),
        };
        match shape.as_deref().and_then(|shape| shape.owner(slot)) {
            Some(owner) => Ok(owner.to_owned()),
            None => {
                self.shared.wanted.notify_one();
                Err(unavailable())
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Shared {
    fn node(&self, address: &str) -> Result<Arc<Node>, CacheError> {
        let mut nodes = self.nodes();
        if let Some(node) = nodes.get(address) {
            return Ok(Arc::clone(node));
        }
        if nodes.len() >= MAX_NODES {
            return Err(CacheError::Full);
        }
        let node = Arc::new(Node::start(address.to_owned(), Arc::clone(&self.connector)));
        nodes.insert(address.to_owned(), Arc::clone(&node));
        Ok(node)
    }

    fn nodes(&self) -> MutexGuard<'_, HashMap<String, Arc<Node>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moved(&self, slot: u16, to: &str) {
        self.shape.send_if_modified(|shape| {
            let map = Arc::make_mut(shape.get_or_insert_default());
            map.moved(slot, to)
        });
        // It is seldom one slot alone.
        self.wanted.notify_one();
    }

    async fn keep_read(self: Arc<Self>) {
        let mut backoff = Backoff::new();
        loop {
            let pause = match self.read().await {
                Some(map) => {
                    backoff.reset();
                    self.keep_only(&map);
                    self.shape.send_replace(Some(Arc::new(map)));
                    LEAST_PAUSE
                }
                None => {
                    // Those who wait for the first one are told that there is none.
                    self.shape.send_if_modified(|shape| {
                        let first = shape.is_none();
                        shape.get_or_insert_default();
                        first
                    });
                    backoff.failed(LEAST_PAUSE, GREATEST_PAUSE, fastrand::u64(..))
                }
            };
            sleep(pause).await;
            if backoff.failures() == 0 {
                // A reading for a cause, or the next one; the time to wait for either is one that differs between processes.
                let next = READ_EVERY.mul_f32(0.75 + fastrand::f32() / 4.0);
                let _ = timeout(next, self.wanted.notified()).await;
            }
        }
    }

    /// Asks one server after the other, those that are up first.
    async fn read(&self) -> Option<SlotMap> {
        let mut candidates: Vec<Arc<Node>> = self.nodes().values().cloned().collect();
        fastrand::shuffle(&mut candidates);
        candidates.sort_by_key(|node| node.is_down());
        for seed in &self.seeds {
            if !candidates.iter().any(|node| node.address() == seed) {
                candidates.extend(self.node(seed));
            }
        }
        for node in candidates {
            let until = Instant::now() + self.ask_limit;
            if let Ok(Reply::Value(value)) = node.call(cmd("CLUSTER").arg("SLOTS"), false, until).await
                && let Some(map) = SlotMap::read(&value, node.address())
            {
                return Some(map);
            }
        }
        None
    }

    /// Servers that are gone from the map need no connection.
    fn keep_only(&self, map: &SlotMap) {
        self.nodes().retain(|address, _| map.contains(address) || self.seeds.contains(address));
    }
}

/// Where a redirection leads; an empty host is that of whoever said it.
pub(super) fn elsewhere(to: &str, from: &str) -> String {
    match (to.strip_prefix(':'), from.rsplit_once(':')) {
        (Some(port), Some((host, _))) => format!("{host}:{port}"),
        _ => to.to_owned(),
    }
}

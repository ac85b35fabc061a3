//! Customers of a network: streams that are held and never silent, and new ones that are opened again and again; what they saw,
//! second by second. They reach a target of their own, so that both ends of each stream are counted here.

mod echo;
mod held;
mod opening;
mod record;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tokio::runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use echo::Echo;
pub use record::{Broken, Refused, Second, Sums};

use crate::network::Network;
use record::Record;

/// How long customers may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(5);
const SECOND: Duration = Duration::from_secs(1);

/// How many customers.
#[derive(Clone, Copy, Debug)]
pub struct TrafficOptions {
    /// Streams that are held, at each proxy.
    pub held: usize,
    /// How often a new one is opened, at each proxy.
    pub open_every: Duration,
}

impl Default for TrafficOptions {
    fn default() -> Self {
        Self { held: 8, open_every: Duration::from_millis(500) }
    }
}

/// Who customers are, and where they go.
#[derive(Clone, Debug)]
struct Customers {
    proxy: SocketAddr,
    user: String,
    password: String,
    target: SocketAddr,
}

/// Traffic on a thread of its own, until it is stopped or dropped.
#[derive(Debug)]
pub struct Traffic {
    record: Arc<Record>,
    stop: watch::Sender<bool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Traffic {
    /// Customers at these proxies, with these options behind their user name (`-provider-…`).
    ///
    /// # Errors
    /// No thread or runtime.
    pub fn start(
        network: &Network,
        wishes: Vec<(SocketAddr, String)>,
        target: SocketAddr,
        options: TrafficOptions,
    ) -> anyhow::Result<Self> {
        let record = Arc::new(Record::begin());
        let (stop, stopped) = watch::channel(false);
        let (user, password) = network.customer().login();
        let customers = |(proxy, wish): (SocketAddr, String)| Customers {
            proxy,
            user: format!("{user}{wish}"),
            password: password.to_owned(),
            target,
        };
        let customers: Vec<Customers> = wishes.into_iter().map(customers).collect();
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::clone(&record);
        let work = move || runtime.block_on(all(customers, options, &shared, stopped));
        let thread = thread::Builder::new().name("customers".to_owned()).spawn(work)?;
        Ok(Self { record, stop, thread: Some(thread) })
    }

    /// What was seen so far.
    #[must_use]
    pub fn sums(&self) -> Sums {
        self.record.sums()
    }

    /// What was seen, second by second.
    #[must_use]
    pub fn seconds(&self) -> Vec<Second> {
        self.record.seconds()
    }

    /// Streams that ended without being asked to.
    #[must_use]
    pub fn broken(&self) -> Vec<Broken> {
        self.record.broken()
    }

    /// Streams that did not come about.
    #[must_use]
    pub fn refused(&self) -> Vec<Refused> {
        self.record.refused()
    }

    /// Seconds since it began.
    #[must_use]
    pub fn elapsed_s(&self) -> f64 {
        self.record.elapsed_s()
    }

    /// Ends all streams in order, and waits for that.
    ///
    /// # Errors
    /// Its thread panicked.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        match self.thread.take() {
            Some(thread) => thread.join().map_err(|_| anyhow!("the customers' thread panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        // A panic of that thread has been printed by its own hook.
        let _ = self.stop();
    }
}

async fn all(
    customers: Vec<Customers>,
    options: TrafficOptions,
    record: &Arc<Record>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut tasks = JoinSet::new();
    for customers in customers {
        let customers = Arc::new(customers);
        for number in 0..options.held {
            let held = held::Held::new(Arc::clone(&customers), number, Arc::clone(record), stopped.clone());
            tasks.spawn(held.run());
        }
        tasks.spawn(held::open_again(customers, options.open_every, Arc::clone(record), stopped.clone()));
    }
    let mut clock = tokio::time::interval(SECOND);
    loop {
        tokio::select! {
            _ = clock.tick() => record.turn(),
            _ = stopped.wait_for(|stop| *stop) => break,
        }
    }
    let goodbye = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GOODBYE, goodbye).await;
    record.turn();
}

/// A target: a thread of its own that sends back what it gets.
///
/// # Errors
/// No port, thread or runtime.
pub fn echo(ip: IpAddr) -> anyhow::Result<Echo> {
    Echo::start(ip).context("the drill's own target")
}

//! Usage into the journal and from there to the records; who came and went; that the relay lives.

use crate::contracts::Usage;
use crate::counters::add;
use crate::hub::{Hub, Presence};
use crate::journal::{Journal, Unsent};
use crate::records::{Beat, Beaten, MAX_BATCH, Records};
use clock::unix_ms;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

/// A record that is not written within this time is written again.
const RECORD_LIMIT: Duration = Duration::from_secs(10);
/// After a failure, the next attempt waits for so long, and a random part of it besides.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// Until the first beat is taken, it is tried again after this time, if that is sooner than the next.
const FIRST_BEAT_PAUSE_MS: u64 = 1_000;
/// Comings and goings are gathered for so long.
const PRESENCE_PAUSE: Duration = Duration::from_millis(100);
/// At the end, what is left may take so long; the journal keeps the usage.
const FINISH_LIMIT: Duration = Duration::from_secs(3);
/// Comings and goings that wait for a database that is gone. Beyond them, the oldest are dropped, and whoever is connected is
/// reported again.
const MAX_PRESENCE: usize = 500_000;

pub(crate) struct Reporting<R> {
    hub: Rc<Hub>,
    records: Arc<R>,
    journal: Arc<Mutex<Journal>>,
    epoch: u64,
    appended: Rc<Notify>,
    tasks: RefCell<Vec<JoinHandle<()>>>,
    /// What the disk did not take yet.
    unwritten: RefCell<Vec<Usage>>,
    /// Comings were dropped.
    presence_lost: Cell<bool>,
}

impl<R: Records> Reporting<R> {
    pub(crate) fn start(hub: &Rc<Hub>, records: Arc<R>, journal: Journal) -> Rc<Self> {
        let epoch = journal.epoch();
        let reporting = Rc::new(Self {
            hub: Rc::clone(hub),
            records,
            journal: Arc::new(Mutex::new(journal)),
            epoch,
            appended: Rc::new(Notify::new()),
            tasks: RefCell::default(),
            unwritten: RefCell::default(),
            presence_lost: Cell::new(false),
        });
        let spawn = tokio::task::spawn_local::<std::pin::Pin<Box<dyn Future<Output = ()>>>>;
        let tasks = vec![
            spawn(Box::pin(Rc::clone(&reporting).keep_usage())),
            spawn(Box::pin(Rc::clone(&reporting).send_usage())),
            spawn(Box::pin(Rc::clone(&reporting).send_presence())),
            spawn(Box::pin(Rc::clone(&reporting).beat())),
            spawn(Box::pin(Rc::clone(&reporting).tell_of_others())),
        ];
        *reporting.tasks.borrow_mut() = tasks;
        reporting
    }

    /// Writes what is left.
    pub(crate) async fn finish(&self) {
        self.tasks.borrow().iter().for_each(JoinHandle::abort);
        self.append().await;
        // The first may only have written again what was under way.
        self.append().await;
        let last = async {
            while let Ok(true) = self.send_presence_once().await {}
            while let Ok(true) = self.send_usage_once().await {}
        };
        if timeout(FINISH_LIMIT, last).await.is_err() {
            tracing::warn!(
                "the last records were not written; usage is in the journal, and is sent at the next start"
            );
        }
    }

    async fn keep_usage(self: Rc<Self>) {
        let interval = Duration::from_millis(self.hub.config.usage_interval_ms.max(1));
        loop {
            tokio::time::sleep(interval).await;
            self.append().await;
            self.hub.contracts.sweep(unix_ms());
            self.hub.sweep_parked();
            self.hub.resume_without_database();
        }
    }

    /// What was used goes to the disk. What cannot be written is written with the next attempt; meanwhile nothing new is begun,
    /// and contracts go on counting.
    async fn append(&self) {
        let mut usage = self.unwritten.take();
        if usage.is_empty() {
            usage = self.hub.contracts.take_usage();
        }
        if usage.is_empty() {
            return;
        }
        // If this is stopped in the middle, it is written again: a record that stands twice is counted once.
        self.unwritten.replace(usage.clone());
        let count = usage.len();
        let bytes: u64 = usage.iter().map(|record| record.bytes).sum();
        let begun = self.hub.clock.now();
        let written =
            self.on_journal(move |journal| journal.append(&usage).map(|()| journal.is_full())).await;
        match written {
            Ok(is_full) => {
                self.unwritten.take();
                add(&self.hub.journalled_bytes, bytes);
                let took = self.hub.clock.now().since(begun);
                self.hub.journal_write_ms.set(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
                if is_full && !self.hub.journal_full.get() {
                    tracing::error!(
                        "the usage journal is full: no new streams until the database has taken it"
                    );
                }
                self.hub.journal_full.set(is_full);
                self.appended.notify_one();
            }
            Err(error) => {
                // Once for each time that it begins.
                if !self.hub.journal_full.replace(true) {
                    tracing::error!(%error, records = count, "usage cannot be written to the journal: no new streams");
                }
            }
        }
    }

    async fn send_usage(self: Rc<Self>) {
        loop {
            match self.send_usage_once().await {
                Ok(true) => {}
                Ok(false) => self.appended.notified().await,
                Err(()) => pause().await,
            }
        }
    }

    /// One batch from the journal to the records; whether there was one.
    async fn send_usage_once(&self) -> Result<bool, ()> {
        let unsent = self.on_journal(Journal::unsent).await.map_err(|error| {
            tracing::error!(%error, "the usage journal cannot be read");
        })?;
        let Some(unsent) = unsent else { return Ok(false) };
        let Unsent { epoch, records, .. } = &unsent;
        self.hub.contracts.database_asked();
        let sent = timeout(RECORD_LIMIT, self.records.usage(*epoch, records)).await;
        self.heard("usage", sent)?;
        let confirmed =
            self.on_journal(move |journal| journal.confirm(&unsent).map(|()| journal.is_full())).await;
        let is_full = confirmed.map_err(|error| {
            tracing::error!(%error, "the usage journal cannot be written");
        })?;
        if self.unwritten.borrow().is_empty() {
            self.hub.journal_full.set(is_full);
        }
        Ok(true)
    }

    async fn send_presence(self: Rc<Self>) {
        loop {
            match self.send_presence_once().await {
                Ok(true) => tokio::time::sleep(PRESENCE_PAUSE).await,
                Ok(false) => self.hub.presence_changed.notified().await,
                Err(()) => pause().await,
            }
        }
    }

    /// What was not written stays, also if this is stopped in the middle: it may be written twice.
    async fn send_presence_once(&self) -> Result<bool, ()> {
        let batch: Vec<Presence> = self.hub.presence(MAX_BATCH);
        if batch.is_empty() {
            return Ok(false);
        }
        self.hub.contracts.database_asked();
        let sent = timeout(RECORD_LIMIT, self.records.presence(self.epoch, &batch)).await;
        let sent = self.heard("presence", sent);
        if sent.is_ok() {
            self.hub.forget_presence(batch.len());
        }
        if self.hub.trim_presence(MAX_PRESENCE) {
            self.presence_lost.set(true);
        }
        if sent.is_ok() && self.presence_lost.take() {
            self.hub.note_all_present();
        }
        sent.map(|()| true)
    }

    async fn beat(self: Rc<Self>) {
        let (started_at_ms, interval_ms) = (unix_ms(), self.hub.config.beat_interval_ms);
        let mut is_known = false;
        loop {
            let keys = Arc::clone(&self.hub.keys.borrow());
            let beat = Beat {
                epoch: self.epoch,
                started_at_ms,
                address: self.hub.config.reached_at(),
                connections: u32::try_from(self.hub.connections().len()).unwrap_or(u32::MAX),
                draining: self.hub.draining.get(),
                ring: keys.ring.number(),
                revocations: keys.revocations.number(),
            };
            self.hub.contracts.database_asked();
            let beaten = self.heard("beat", timeout(RECORD_LIMIT, self.records.beat(beat)).await);
            if beaten == Ok(Beaten::New) && is_known {
                tracing::warn!(
                    "this relay's record had vanished and is back; whoever is connected is reported again"
                );
                self.hub.note_all_present();
            }
            is_known |= beaten.is_ok();
            // Nobody is sent to a relay that has not beaten yet.
            let pause_ms = if is_known { interval_ms } else { interval_ms.min(FIRST_BEAT_PAUSE_MS) };
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        }
    }

    /// As often as it beats: others whose beats are missed may be reached from here.
    async fn tell_of_others(self: Rc<Self>) {
        let interval = Duration::from_millis(self.hub.config.beat_interval_ms);
        loop {
            tokio::time::sleep(interval.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
            if let Ok(Err(error)) = timeout(RECORD_LIMIT, self.records.tell_of_others()).await {
                tracing::debug!(error, "nothing was told of other relays");
            }
        }
    }

    /// What a record has met. One that was taken says that the database is there.
    fn heard<T>(&self, what: &str, sent: Result<Result<T, crate::RecordError>, Elapsed>) -> Result<T, ()> {
        let sent = failed(what, sent);
        if sent.is_ok() {
            self.hub.contracts.database_answered();
        }
        sent
    }

    /// The disk may be slow: it is asked from a thread beside.
    async fn on_journal<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Journal) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let journal = Arc::clone(&self.journal);
        tokio::task::spawn_blocking(move || work(&mut journal.lock().unwrap_or_else(PoisonError::into_inner)))
            .await
            .unwrap_or_else(|_| Err(io::Error::other("the journal's thread has ended")))
    }
}

async fn pause() {
    tokio::time::sleep(RETRY_PAUSE + RETRY_PAUSE.mul_f64(fastrand::f64())).await;
}

fn failed<T>(what: &str, sent: Result<Result<T, crate::RecordError>, Elapsed>) -> Result<T, ()> {
    match sent {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => {
            tracing::warn!(what, error, "not written; it is tried again");
            Err(())
        }
        Err(_) => {
            tracing::warn!(what, limit_s = RECORD_LIMIT.as_secs(), "not written in time; it is tried again");
            Err(())
        }
    }
}

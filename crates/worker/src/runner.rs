//! Does what stands ready: claims within the lanes' shares, runs, says how it ended.
//!
//! A claim is a lease. A job is stopped well before its lease ends, so two workers never run the same one at once; how it ended
//! is said until the database has heard it, or the lease is over. A worker that is told to end hands back what it holds.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use store::{Claimed, Claims, Ended, Recurring, Store, StoreError};
use tasks::{LANES, Lane, Shares, retry_ms};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use uuid::Uuid;

/// Without anything that is due, the next look is after so long at most: new tasks may have come.
const IDLE_LIMIT: Duration = Duration::from_secs(1);
/// While there is more to do, ms: others get at the database as well.
const MORE_REST_MS: u64 = 20;
/// A task of a kind that this worker does not know goes back for so long, ms: another version may know it.
const UNKNOWN_REST_MS: u64 = 30_000;
/// The recurring jobs are written down again after so long.
const WRITE_EVERY: Duration = Duration::from_secs(60);
/// Handing back at the end may take so long.
const HAND_BACK_LIMIT: Duration = Duration::from_secs(2);
/// The part of a lease in which a task has to end.
const WORK_SHARE: f64 = 0.7;

/// What a turn leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing that is due.
    Nothing,
    /// There is more.
    More,
}

type Turn = Pin<Box<dyn Future<Output = Result<Left, StoreError>> + Send>>;

/// A job that recurs.
pub(crate) struct Job {
    pub(crate) recurring: Recurring,
    turn: Box<dyn Fn() -> Turn + Send + Sync>,
}

impl Job {
    pub(crate) fn new<F>(
        kind: &'static str,
        lane: Lane,
        every_ms: u64,
        store: Store,
        turn: impl Fn(Store) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Left, StoreError>> + Send + 'static,
    {
        let recurring = Recurring { kind, lane, every_ms: every_ms.max(1) };
        Self { recurring, turn: Box::new(move || Box::pin(turn(store.clone()))) }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.recurring.fmt(f)
    }
}

/// One worker's share of the work.
#[derive(Debug)]
pub(crate) struct Runner {
    store: Store,
    worker: Uuid,
    jobs: Arc<HashMap<&'static str, Job>>,
    lease: Duration,
    shares: Shares,
    running: JoinSet<Lane>,
}

impl Runner {
    pub(crate) fn new(store: Store, worker: Uuid, jobs: Vec<Job>, lease_ms: u64) -> Self {
        Self {
            store,
            worker,
            jobs: Arc::new(jobs.into_iter().map(|job| (job.recurring.kind, job)).collect()),
            lease: Duration::from_millis(lease_ms),
            shares: Shares::default(),
            running: JoinSet::new(),
        }
    }

    /// Works until `shutdown`; then what runs is stopped and handed back.
    pub(crate) async fn run(mut self, shutdown: impl Future<Output = ()>) {
        tokio::pin!(shutdown);
        let (mut failures, mut next, mut written) = (0, Instant::now(), None);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                Some(ended) = self.running.join_next() => self.note_end(ended, &mut next),
                () = sleep_until(next) => {
                    let wanted = self.shares.wanted();
                    // The lease is counted from before it was asked for.
                    let begun = Instant::now();
                    let claims = {
                        let claims = self.claim(wanted, &mut written);
                        tokio::pin!(claims);
                        tokio::select! {
                            claims = &mut claims => Some(claims),
                            // A claim that is under way is waited for: it is to be handed back too.
                            () = &mut shutdown => {
                                let _ = timeout(HAND_BACK_LIMIT, claims).await;
                                None
                            }
                        }
                    };
                    let Some(claims) = claims else { break };
                    next = Instant::now() + self.take(begun, wanted, claims, &mut failures);
                }
            }
        }
        self.running.shutdown().await;
        match timeout(HAND_BACK_LIMIT, self.store.hand_back_tasks(self.worker)).await {
            Ok(Ok(tasks)) => tracing::info!(tasks, "handed back"),
            Ok(Err(error)) => tracing::warn!(%error, "not handed back; the leases bring the tasks back"),
            Err(_) => tracing::warn!("not handed back in time; the leases bring the tasks back"),
        }
    }

    async fn claim(
        &self,
        wanted: [usize; LANES],
        written: &mut Option<Instant>,
    ) -> Result<Claims, StoreError> {
        // Again from time to time: somebody may have taken one out by hand.
        if written.is_none_or(|at| at.elapsed() > WRITE_EVERY) {
            let jobs = self.jobs.values().map(|job| job.recurring).collect();
            if !self.store.set_recurring(jobs).await? {
                // The api makes it at its first start.
                tracing::debug!("the network is not in the database yet");
                return Ok(Claims::default());
            }
            *written = Some(Instant::now());
        }
        if wanted.iter().all(|wanted| *wanted == 0) {
            return Ok(Claims::default());
        }
        let lease_ms = u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX);
        self.store.claim_tasks(self.worker, wanted, lease_ms).await
    }

    /// Begins what was claimed; how long to rest.
    fn take(
        &mut self,
        begun: Instant,
        wanted: [usize; LANES],
        claims: Result<Claims, StoreError>,
        failures: &mut u32,
    ) -> Duration {
        let Claims { claimed, next_ms } = match claims {
            Ok(claims) => claims,
            Err(error) => {
                *failures += 1;
                let rest_ms = retry_ms(*failures, error.retry_after_ms(), fastrand::u64(..));
                // Once for each time that it begins to fail.
                if *failures == 1 {
                    tracing::warn!(kind = error.kind().label(), %error, "no tasks can be claimed");
                }
                return Duration::from_millis(rest_ms);
            }
        };
        if std::mem::take(failures) > 0 {
            tracing::info!("tasks are claimed again");
        }
        let mut counts = [0; LANES];
        for claimed in claimed {
            counts[claimed.lane.index()] += 1;
            self.start(claimed, begun);
        }
        if self.shares.claimed(wanted, counts) && counts.iter().sum::<usize>() > 0 {
            return Duration::from_millis(MORE_REST_MS);
        }
        self.shares.look_again();
        let next = next_ms.map_or(IDLE_LIMIT, |next_ms| Duration::from_millis(next_ms.max(MORE_REST_MS)));
        next.min(IDLE_LIMIT)
    }

    fn note_end(&mut self, ended: Result<Lane, tokio::task::JoinError>, next: &mut Instant) {
        match ended {
            Ok(lane) => {
                self.shares.ended(lane);
                // Its place is free, and it may be due again.
                *next = (*next).min(Instant::now() + Duration::from_millis(MORE_REST_MS));
            }
            Err(error) => tracing::error!(%error, "a task's end was lost"),
        }
    }

    fn start(&mut self, claimed: Claimed, begun: Instant) {
        let (store, worker, jobs, lease) =
            (self.store.clone(), self.worker, Arc::clone(&self.jobs), self.lease);
        self.running.spawn(async move {
            let lane = claimed.lane;
            // Of the lease, which began with the question: its answer may have taken a while.
            let limit = (begun + lease.mul_f64(WORK_SHARE)).saturating_duration_since(Instant::now());
            let ended = work(&jobs, &claimed, limit).await;
            say(&store, worker, &claimed, ended, begun + lease).await;
            lane
        });
    }
}

/// Does it, in a task of its own: one that panics has failed, and no more.
async fn work(jobs: &Arc<HashMap<&'static str, Job>>, claimed: &Claimed, limit: Duration) -> Ended {
    let kind = claimed.kind.as_str();
    let Some(job) = jobs.get(kind) else {
        tracing::warn!(kind, "a task of a kind that is not known here goes back");
        return Ended::Again { after_ms: UNKNOWN_REST_MS, failures: claimed.failures };
    };
    let mut turn: JoinSet<_> = std::iter::once((job.turn)()).collect();
    let why = match timeout(limit, turn.join_next()).await {
        Ok(Some(Ok(Ok(left)))) => {
            let after_ms = if left == Left::More { MORE_REST_MS } else { job.recurring.every_ms };
            return if claimed.recurs { Ended::Again { after_ms, failures: 0 } } else { Ended::Done };
        }
        Ok(Some(Ok(Err(error)))) => {
            let rest_ms = retry_ms(claimed.failures + 1, error.retry_after_ms(), fastrand::u64(..));
            tracing::warn!(kind, label = error.kind().label(), %error, rest_ms, "a task failed");
            return claimed.after_failure(rest_ms, error.to_string());
        }
        Ok(Some(Err(error))) => error.to_string(),
        Ok(None) => "nothing was done".to_owned(),
        Err(_) => format!("it took longer than {} s", limit.as_secs()),
    };
    let rest_ms = retry_ms(claimed.failures + 1, None, fastrand::u64(..));
    tracing::error!(kind, why, rest_ms, "a task failed");
    claimed.after_failure(rest_ms, why)
}

/// Says how it ended, until that is heard or the lease is over.
async fn say(store: &Store, worker: Uuid, claimed: &Claimed, ended: Ended, lease_end: Instant) {
    let mut failures = 0;
    while Instant::now() < lease_end {
        match store.end_task(worker, claimed, ended.clone()).await {
            Ok(true) => return,
            Ok(false) => {
                tracing::warn!(kind = claimed.kind, "a task's lease was over before it ended");
                return;
            }
            Err(error) => {
                failures += 1;
                let rest_ms = retry_ms(failures, error.retry_after_ms(), fastrand::u64(..));
                sleep(Duration::from_millis(rest_ms)).await;
            }
        }
    }
    tracing::debug!(kind = claimed.kind, "how a task ended was not heard; its lease brings it back");
}

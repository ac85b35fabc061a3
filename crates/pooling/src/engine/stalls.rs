//! A pool whose clients wait and that gives no answer for `stall_after` says why: once in the log, with its end; in SHOW
//! STALLS, in SHOW EVENTS and as metrics.
//!
//! Nothing here is asked while a pool serves. Its timer looks when somebody has waited for `stall_after`, and each second
//! while it stands still. What that takes one pass over all servers for is kept for a second, for all pools.

mod census;

use super::Engine;
use crate::connection::PoolId;
use crate::events::EventKind;
use crate::pool::Pool;
use crate::snapshot::StallRow;
use crate::stall::{Asked, Explanation, Stall, StallCause, StallEnd};
use census::{Census, Work};
use overload::Moment;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};

/// Most stalls that are remembered after their end; the oldest is forgotten first.
pub(crate) const MAX_ENDED_STALLS: usize = 256;

/// How often a pool that stands still is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// What has been, and what is known of all servers.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    ended: VecDeque<Ended>,
    census: Option<Census>,
}

#[derive(Debug)]
struct Ended {
    database: Arc<str>,
    user: Arc<str>,
    explanation: Explanation,
    began: Moment,
    ended: Moment,
    how: StallEnd,
}

impl Engine {
    /// Somebody is about to wait in this pool.
    pub(super) fn note_asked(&mut self, id: PoolId) {
        let (now, rest) = (self.now, self.config.general.stall_after);
        let pool = self.pool_mut(id);
        // Whoever gives up and comes again goes on waiting; after an answer or a rest, the wait is another.
        let before = pool.asked.filter(|asked| {
            pool.has_waiters()
                || pool.answered_at.is_none_or(|at| at < asked.first) && now.since(asked.last) < rest
        });
        pool.asked = Some(Asked { first: before.map_or(now, |asked| asked.first), last: now });
    }

    /// When the pool is to be looked at.
    pub(super) fn next_stall_look(&self, id: PoolId) -> Option<Moment> {
        let limit = self.config.general.stall_after;
        let pool = self.pool(id);
        if pool.stall.is_some() {
            return Some(self.now + LOOK);
        }
        silent_since(pool).filter(|_| !limit.is_zero()).map(|since| since + limit)
    }

    /// Looks at a pool: whether it stands still, or no longer does.
    pub(super) fn watch_stall(&mut self, id: PoolId) {
        let (now, limit) = (self.now, self.config.general.stall_after);
        let pool = self.pool(id);
        if let Some(stall) = &pool.stall {
            if let Some(at) = pool.answered_at.filter(|at| *at > stall.began) {
                self.end_stall(id, at, StallEnd::Answered);
            } else if !pool.has_waiters() && pool.asked.is_none_or(|asked| now.since(asked.last) >= limit) {
                self.end_stall(id, now, StallEnd::NobodyWaits);
            } else {
                self.explain_again(id);
            }
        } else if let Some(began) = silent_since(pool).filter(|_| !limit.is_zero())
            && now.since(began) >= limit
        {
            self.begin_stall(id, began);
        }
    }

    fn begin_stall(&mut self, id: PoolId, began: Moment) {
        let explanation = self.explain(id);
        let Explanation { cause, ref detail } = explanation;
        let pool = self.pool(id);
        let waiting = pool.line.len() + pool.welcomes.len();
        warn!(
            database = %pool.database, user = %pool.user, cause = cause.label(), waiting,
            silent_s = self.now.since(began).as_secs_f64(), "pool stands still: {detail}"
        );
        self.record(Some(id), EventKind::Stalled { cause, detail: detail.clone() });
        let pool = self.pool_mut(id);
        pool.counters.count_stall(cause);
        pool.stall = Some(Stall { began, explanation });
    }

    /// The cause may have become another one.
    fn explain_again(&mut self, id: PoolId) {
        if !self.pool(id).has_waiters() {
            return;
        }
        let explanation = self.explain(id);
        let Explanation { cause, ref detail } = explanation;
        let detail = detail.clone();
        let Some(stall) = &mut self.pool_mut(id).stall else { return };
        let before = std::mem::replace(&mut stall.explanation, explanation);
        if before.cause != cause {
            self.record(Some(id), EventKind::Stalled { cause, detail });
        }
    }

    /// The pool does not stand still any more.
    pub(super) fn end_stall(&mut self, id: PoolId, ended: Moment, how: StallEnd) {
        let pool = self.pool_mut(id);
        let Some(Stall { began, explanation }) = pool.stall.take() else { return };
        let (database, user) = (pool.database.clone(), pool.user.clone());
        let lasted = ended.since(began);
        info!(
            %database, %user, cause = explanation.cause.label(), lasted_s = lasted.as_secs_f64(),
            end = how.label(), "pool no longer stands still"
        );
        self.record(Some(id), EventKind::StallOver { how, lasted });
        let list = &mut self.stalls.ended;
        if list.len() >= MAX_ENDED_STALLS {
            list.pop_front();
        }
        list.push_back(Ended { database, user, explanation, began, ended, how });
    }

    /// What keeps the clients of this pool waiting.
    fn explain(&mut self, id: PoolId) -> Explanation {
        self.take_census();
        let work = self.stalls.census.as_ref().and_then(|census| census.of(id)).copied().unwrap_or_default();
        let pool = self.pool(id);
        let (cause, detail) = if pool.live() == 0 {
            self.explain_no_server(pool, id)
        } else if pool.active == 0 {
            let count = pool.live();
            (
                StallCause::Cleaning,
                format!("all {count} servers finish what clients have left, or are tested"),
            )
        } else if work.running == 0 && work.held() > 0 {
            (StallCause::HeldByClients, self.describe_holders(&work))
        } else if work.running > 0 && self.servers_behind_lock(id) >= work.running {
            let running = work.running;
            let detail = format!("{running} servers wait for locks that others hold; SHOW LOCKS names them");
            (StallCause::AllLocked, detail)
        } else {
            self.explain_running(pool, &work)
        };
        Explanation { cause, detail }
    }

    fn explain_no_server(&self, pool: &Pool, id: PoolId) -> (StallCause, String) {
        let rests = self.pacer_cause(pool.address);
        if let Some(failure) = &pool.failure {
            let since = self.now.since(failure.since).as_secs_f64();
            let (cause, text) = (failure.last.cause.label(), &failure.last.log_text);
            let detail =
                format!("no server, and logins have failed for {since:.1} s, last by {cause}: {text}");
            (StallCause::LoginsFailing, detail)
        } else if pool.logins > 0 {
            let count = pool.logins;
            (StallCause::LoginsPending, format!("no server, and {count} logins that do not finish"))
        } else if let Some(cause) = rests {
            let detail =
                format!("no server, and logins to its address rest, last failed by {}", cause.label());
            (StallCause::LoginsFailing, detail)
        } else if self.cap_room(id) == 0 {
            let detail =
                "no server, and other pools have all that max_db_connections or max_user_connections \
                          allow"
                    .to_owned();
            (StallCause::SharedLimit, detail)
        } else {
            let closing = pool.closing;
            (StallCause::NoServer, format!("no server, and none is being opened; {closing} are closing"))
        }
    }

    fn explain_running(&self, pool: &Pool, work: &Work) -> (StallCause, String) {
        let longest = work.running_since.map_or(Duration::ZERO, |since| self.now.since(since)).as_secs_f64();
        let (running, held) = (work.running, work.held());
        let beside = if held > 0 {
            format!("; {held} more are held by clients that do not use them")
        } else {
            String::new()
        };
        let census = self.stalls.census.as_ref();
        let answered = census.and_then(|census| census.answered_at(pool.address));
        // Lately, and after this pool's own last answer, which counts among them.
        let answers_others = answered.is_some_and(|at| {
            silent_since(pool).is_some_and(|since| at > since)
                && self.now.since(at) < self.config.general.stall_after / 2
        });
        if answers_others {
            let detail = format!(
                "{running} servers work on queries, the longest for {longest:.1} s, while the database answers \
                 other pools{beside}"
            );
            (StallCause::AllRunning, detail)
        } else {
            let detail = format!(
                "{running} servers owe an answer, the longest for {longest:.1} s, and the database has answered \
                 nobody{beside}"
            );
            (StallCause::ServerSilent, detail)
        }
    }

    /// All stalls that go on, then those that have ended, the latest first.
    #[must_use]
    pub fn stall_rows(&self) -> Vec<StallRow> {
        let mut rows: Vec<StallRow> =
            self.pool_index.values().filter_map(|&id| self.ongoing_row(self.pool(id))).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.lasted));
        rows.extend(self.stalls.ended.iter().rev().map(|stall| StallRow {
            database: stall.database.clone(),
            user: stall.user.clone(),
            cause: stall.explanation.cause.label(),
            detail: stall.explanation.detail.clone(),
            waiting: 0,
            began_ago: self.now.since(stall.began),
            lasted: stall.ended.since(stall.began),
            end: Some(stall.how.label()),
        }));
        rows
    }

    fn ongoing_row(&self, pool: &Pool) -> Option<StallRow> {
        let stall = pool.stall.as_ref()?;
        let lasted = self.now.since(stall.began);
        Some(StallRow {
            database: pool.database.clone(),
            user: pool.user.clone(),
            cause: stall.explanation.cause.label(),
            detail: stall.explanation.detail.clone(),
            waiting: pool.line.len() + pool.welcomes.len(),
            began_ago: lasted,
            lasted,
            end: None,
        })
    }
}

/// From when on somebody has waited and nobody has got an answer; none if nobody waits.
fn silent_since(pool: &Pool) -> Option<Moment> {
    let asked = pool.asked.filter(|_| pool.has_waiters())?;
    Some(pool.answered_at.map_or(asked.first, |at| at.max(asked.first)))
}

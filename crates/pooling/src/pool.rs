//! One pool: the servers and the waiting clients of one (database, user).

use crate::client::NEVER;
use crate::connection::{ClientId, ServerId};
use crate::guard::Guard;
use crate::parameters::Tracked;
use crate::seam::{OpenFailure, Target};
use crate::snapshot::PoolCounters;
use crate::stall::{Asked, Stall};
use overload::Moment;
use overload::cause::Cause;
use overload::lanes::Lanes;
use overload::line::Line;
use overload::recovery::Recovery;
use overload::running::RunningLimit;
use pgwire::scram::ScramKeys;
use settings::pooler::{General, PoolMode, PoolSettings, SessionState};
use std::collections::VecDeque;
use std::sync::Arc;

/// Index of a server address in the engine's list.
pub(crate) type AddressIndex = usize;
/// Index of a shared cap in the engine's list.
pub(crate) type CapIndex = usize;

/// The servers and the waiting clients of one (database, user).
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) database: Arc<str>,
    pub(crate) user: Arc<str>,
    pub(crate) target: Arc<Target>,
    pub(crate) address: AddressIndex,
    pub(crate) caps: [Option<CapIndex>; 3],
    pub(crate) settings: PoolSettings,
    /// What a client's login proved, for a server that keeps the same verifier.
    pub(crate) learnt: Option<ScramKeys>,
    /// Ready for use; the last one used is at the back.
    pub(crate) idle: VecDeque<ServerId>,
    /// Clients that wait for a server, by lane; and how many servers each lane uses.
    pub(crate) line: Lanes<ClientId>,
    /// Logged-in clients that wait for the parameters of the first server.
    pub(crate) welcomes: Line<ClientId>,
    pub(crate) active: usize,
    pub(crate) cleaning: usize,
    /// Those of them that are expected back within a round trip.
    pub(crate) tests: usize,
    pub(crate) closing: usize,
    /// Those of the active ones that stay with their client.
    pub(crate) pinned: usize,
    pub(crate) logins: usize,
    /// Clients logged in to this pool.
    pub(crate) clients: usize,
    /// What the last server reported at its login: the greeting of each client.
    pub(crate) greeting: Option<Greeting>,
    /// Rest after failures that are this pool's own, such as a wrong password.
    pub(crate) recovery: Recovery,
    pub(crate) failure: Option<Failure>,
    pub(crate) armed_at: Moment,
    /// In the list of pools that wait for the end of a login of the same address.
    pub(crate) hungry: bool,
    /// When a server last answered a query.
    pub(crate) answered_at: Option<Moment>,
    /// When its clients have asked for servers and did not get one at once.
    pub(crate) asked: Option<Asked>,
    /// It stands still.
    pub(crate) stall: Option<Stall>,
    /// When this pool last took or gave up a place under a shared cap.
    pub(crate) turn_at: Moment,
    /// No longer in the configuration.
    pub(crate) removed: bool,
    /// Nothing is left of it: its place waits for another pool.
    pub(crate) is_free: bool,
    /// Since when it has had neither clients nor servers.
    pub(crate) unused_since: Option<Moment>,
    /// Its name is served by the `*` line.
    pub(crate) is_automatic: bool,
    /// Keeps its minimum without clients too: its database has a line and a user of its own.
    pub(crate) is_prewarmed: bool,
    /// What `running_limit` has found.
    pub(crate) running: RunningLimit,
    /// Requests that may run at once by it; no limit unless it is on.
    pub(crate) most_running: usize,
    /// Clients that have waited so long that the reserve is for them; no more than it has places.
    pub(crate) overdue: usize,
    /// Its servers pile up behind DDL: another one would only stand there too.
    pub(crate) is_piled_up: bool,
    /// Against overload.
    pub(crate) guard: Guard,
    pub(crate) counters: PoolCounters,
}

/// What a client is told at login.
#[derive(Debug)]
pub(crate) struct Greeting {
    /// All reported parameters, in the server's order.
    pub(crate) parameters: Vec<(String, String)>,
    /// The tracked ones among them: where a client starts.
    pub(crate) tracked: Arc<Tracked>,
}

/// Servers of this pool cannot be opened.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) last: OpenFailure,
    /// When the first of an unbroken row of attempts failed.
    pub(crate) since: Moment,
}

impl Pool {
    pub(crate) fn new(
        database: Arc<str>,
        user: Arc<str>,
        target: Arc<Target>,
        address: AddressIndex,
        settings: PoolSettings,
    ) -> Self {
        let greatest = settings.pool_size + settings.reserve_pool_size;
        Self {
            running: RunningLimit::new(greatest),
            most_running: usize::MAX,
            database,
            user,
            target,
            address,
            caps: [None; 3],
            settings,
            learnt: None,
            idle: VecDeque::new(),
            line: Lanes::new(usize::MAX),
            welcomes: Line::new(usize::MAX),
            active: 0,
            cleaning: 0,
            tests: 0,
            closing: 0,
            pinned: 0,
            logins: 0,
            clients: 0,
            greeting: None,
            recovery: Recovery::new(),
            failure: None,
            armed_at: NEVER,
            hungry: false,
            answered_at: None,
            asked: None,
            stall: None,
            turn_at: Moment::ORIGIN,
            removed: false,
            is_free: false,
            unused_since: None,
            is_automatic: false,
            is_prewarmed: false,
            overdue: 0,
            is_piled_up: false,
            guard: Guard::default(),
            counters: PoolCounters::default(),
        }
    }

    /// True if it is to be known what a client leaves in the session of its server.
    #[inline]
    pub(crate) fn watches_sessions(&self) -> bool {
        self.settings.pool_mode != PoolMode::Session && self.settings.session_state != SessionState::Ignore
    }

    /// True if clients' prepared statements are kept track of: where a client may have another server the next time.
    #[inline]
    pub(crate) fn translates_statements(&self, general: &General) -> bool {
        self.settings.pool_mode != PoolMode::Session && general.max_prepared_statements > 0
    }

    /// Servers that have logged in and are not on their way out.
    pub(crate) fn live(&self) -> usize {
        self.idle.len() + self.active + self.cleaning
    }

    /// Everything that counts against the size.
    pub(crate) fn total(&self) -> usize {
        self.live() + self.logins + self.closing
    }

    /// Servers that serve the line, or soon will.
    pub(crate) fn serving(&self) -> usize {
        (self.live() + self.logins).saturating_sub(self.pinned).min(self.most_running)
    }

    /// Someone waits whom a further server would help.
    pub(crate) fn has_waiters(&self) -> bool {
        !self.line.is_empty() || !self.welcomes.is_empty()
    }

    /// Logins that are wanted now, before any limit: one for each waiter that no login or test under way will serve, and what
    /// is missing of the minimum. The greeting needs one server, however many clients wait for it: what nobody has
    /// proven yet, such as a password, is tried once and not by a crowd.
    pub(crate) fn wanted(&self) -> usize {
        if self.is_piled_up {
            return 0;
        }
        let waiting = self.line.len() + usize::from(!self.welcomes.is_empty());
        // More servers than may run at once would help nobody.
        let useful = self.most_running.saturating_sub(self.live() + self.logins);
        let for_waiters = waiting.saturating_sub(self.logins + self.tests).min(useful);
        let for_minimum = self.minimum().saturating_sub(self.live() + self.logins);
        for_waiters.max(for_minimum)
    }

    /// Someone waits whom a further server would help, and its own size allows one.
    pub(crate) fn is_needy(&self) -> bool {
        self.wanted() > 0 && self.has_waiters() && self.room() > 0
    }

    /// Servers that its own size allows beside those that count already: up to `pool_size`, and from the reserve one for
    /// each who has waited too long and whom no login under way will serve.
    pub(crate) fn room(&self) -> usize {
        let total = self.total();
        let regular = self.settings.pool_size.saturating_sub(total);
        let left = self.greatest_size().saturating_sub(total.max(self.settings.pool_size));
        regular + self.overdue.saturating_sub(self.logins + regular).min(left)
    }

    /// The most servers that it may ever have.
    pub(crate) fn greatest_size(&self) -> usize {
        self.settings.pool_size + self.settings.reserve_pool_size
    }

    /// Servers that it keeps open. Without clients that is for pools that are known beforehand.
    pub(crate) fn minimum(&self) -> usize {
        if self.is_prewarmed || self.clients > 0 { self.settings.min_pool_size } else { 0 }
    }

    /// Neither clients nor servers nor logins.
    pub(crate) fn is_empty(&self) -> bool {
        self.clients == 0 && self.total() == 0
    }

    /// Takes a server out of the idle ones.
    pub(crate) fn forget_idle(&mut self, server: ServerId) {
        if let Some(at) = self.idle.iter().rposition(|&idle| idle == server) {
            self.idle.remove(at);
        }
    }

    /// Notes that an attempt failed; the row of failures goes on or begins.
    pub(crate) fn note_failure(&mut self, now: Moment, failure: OpenFailure) {
        self.count_failure(failure.cause);
        let since = self.failure.as_ref().map_or(now, |before| before.since);
        self.failure = Some(Failure { last: failure, since });
    }

    fn count_failure(&mut self, cause: Cause) {
        let label = cause.label();
        match self.counters.server_open_failures.iter_mut().find(|(known, _)| *known == label) {
            Some((_, count)) => *count += 1,
            None => self.counters.server_open_failures.push((label, 1)),
        }
    }
}

//! One budget for each database server: asked before a login begins, told when a server is really gone. The rules are
//! those of the room `budget`; the caps' turns and evictions share out what it allows.
//!
//! Without `server_budget` no address has a [`Guard`], and nothing here does anything.

use super::Engine;
use super::timers::Key;
use crate::client::NEVER;
use crate::close_cause::CloseCause;
use crate::connection::{PoolId, ServerId};
use crate::pool::AddressIndex;
use crate::seam::{BudgetAnswer, BudgetRequest, OpenFailure, ServerSecret, Target, Transport};
use crate::server::ServerOrigin;
use crate::snapshot::{BudgetRow, EstimateRow};
use budget::{Demand, Estimate, Lease, LeaseState, Order, Size, Step, Terms};
use overload::Moment;
use overload::cause::{Cause, Scope};
use settings::pooler::{BudgetSettings, ServerAddress, ServerBudget};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};

/// `application_name` of control connections.
const BUDGET_APPLICATION: &str = "holdfast budget";

/// The longest that an order takes on a session that is there; a new one has `server_connect_timeout` before that.
const ORDER_LIMIT: Duration = Duration::from_secs(2);

/// The budget of one server, as far as it is ours.
#[derive(Debug)]
pub(super) struct Guard {
    lease: Lease,
    /// What roles and databases of the server carry, by their names there; only those that have connections or have been
    /// found full.
    roles: HashMap<String, Scoped>,
    databases: HashMap<String, Scoped>,
    armed_at: Moment,
    state: LeaseState,
}

/// The connections of one role or database.
#[derive(Debug, Default)]
struct Scoped {
    attempts: usize,
    standing: usize,
    estimate: Estimate,
}

impl Scoped {
    fn room(&self, now: Moment) -> usize {
        let limit = self.estimate.limit(now).unwrap_or(usize::MAX);
        limit.saturating_sub(self.attempts + self.standing)
    }

    fn is_of_use(&self, now: Moment) -> bool {
        self.attempts + self.standing > 0 || self.estimate.limit(now).is_some()
    }
}

impl Guard {
    pub(super) fn new(terms: Terms, now: Moment) -> Self {
        Self {
            lease: Lease::new(terms, now),
            roles: HashMap::new(),
            databases: HashMap::new(),
            armed_at: NEVER,
            state: LeaseState::Unused,
        }
    }

    fn scopes(&mut self, target: &Target) -> [&mut Scoped; 2] {
        [
            self.roles.entry(target.user.clone()).or_default(),
            self.databases.entry(target.database.clone()).or_default(),
        ]
    }

    fn forget_unused(&mut self, now: Moment) {
        self.roles.retain(|_, scoped| scoped.is_of_use(now));
        self.databases.retain(|_, scoped| scoped.is_of_use(now));
    }
}

/// The terms that a configuration asks for. They hold for as long as the process runs.
pub(super) fn terms_of(settings: &BudgetSettings) -> Option<Terms> {
    let size = match settings.size {
        ServerBudget::Off => return None,
        ServerBudget::Automatic => Size::Automatic,
        ServerBudget::Connections(count) => Size::Connections(count),
    };
    Some(Terms { size, reserved: settings.reserved, chunk: settings.chunk, settle: settings.settle })
}

impl Engine {
    pub(super) fn has_budget(&self, address: AddressIndex) -> bool {
        self.guard(address).is_some()
    }

    /// Logins that the budget of this server allows now.
    pub(super) fn budget_places(&self, address: AddressIndex) -> usize {
        self.guard(address).map_or(usize::MAX, |guard| guard.lease.may_open(self.now))
    }

    pub(super) fn is_budget_exhausted(&self, address: AddressIndex) -> bool {
        self.guard(address).is_some_and(|guard| guard.lease.is_exhausted(self.now))
    }

    /// Somebody in this pool waits for want of a place in the budget.
    pub(super) fn waits_for_budget(&self, id: PoolId) -> bool {
        let pool = self.pool(id);
        pool.caps[2].is_some() && pool.room() > 0 && self.is_budget_exhausted(pool.address)
    }

    /// Logins that the role and the database of this pool's servers have been seen to allow.
    pub(super) fn scope_room(&self, id: PoolId) -> usize {
        let pool = self.pool(id);
        let Some(guard) = self.guard(pool.address) else { return usize::MAX };
        let scopes = [guard.roles.get(&pool.target.user), guard.databases.get(&pool.target.database)];
        scopes.into_iter().flatten().map(|scoped| scoped.room(self.now)).min().unwrap_or(usize::MAX)
    }

    /// The pool could do with more places than there are.
    pub(super) fn want_places(&mut self, id: PoolId) {
        let pool = self.pool(id);
        if pool.caps[2].is_some() {
            let address = pool.address;
            self.arm_budget(address, self.now);
        }
    }

    /// A login begins.
    pub(super) fn budget_began(&mut self, id: PoolId) {
        let pool = self.pool(id);
        let (address, target) = (pool.address, pool.target.clone());
        let Some(guard) = self.guard_mut(address) else { return };
        guard.lease.began();
        guard.scopes(&target).into_iter().for_each(|scoped| scoped.attempts += 1);
    }

    /// It has succeeded.
    pub(super) fn budget_opened(&mut self, origin: &ServerOrigin, process_id: i32) {
        let now = self.now;
        let Some(guard) = self.guard_mut(origin.address) else { return };
        guard.lease.opened(now, process_id);
        for scoped in guard.scopes(&origin.target) {
            scoped.attempts = scoped.attempts.saturating_sub(1);
            scoped.standing += 1;
        }
        self.arm_budget(origin.address, now);
    }

    /// It has failed.
    pub(super) fn budget_failed(&mut self, address: AddressIndex, target: &Target, failure: &OpenFailure) {
        let now = self.now;
        let Some(guard) = self.guard_mut(address) else { return };
        let [role, database] = guard.scopes(target);
        let refused = |scoped: &mut Scoped| scoped.estimate.refused(now, scoped.standing, scoped.attempts);
        match failure.cause {
            Cause::TooManyConnections { scope: Scope::Role } => refused(role),
            Cause::TooManyConnections { scope: Scope::Database } => refused(database),
            _ => {}
        }
        for scoped in [role, database] {
            scoped.attempts = scoped.attempts.saturating_sub(1);
        }
        if failure.cause == (Cause::TooManyConnections { scope: Scope::Server }) {
            guard.lease.refused(now);
        }
        guard.lease.failed(now, may_live(failure));
        guard.forget_unused(now);
        self.arm_budget(address, now);
    }

    /// A server is not ours any more. `is_gone`: its process has ended, as far as the end of its stream says.
    pub(super) fn budget_ended(&mut self, origin: &ServerOrigin, process_id: i32, is_gone: bool) {
        let now = self.now;
        let Some(guard) = self.guard_mut(origin.address) else { return };
        guard.lease.ended(now, process_id, is_gone);
        for scoped in guard.scopes(&origin.target) {
            scoped.standing = scoped.standing.saturating_sub(1);
        }
        guard.forget_unused(now);
        self.arm_budget(origin.address, now);
    }

    /// An order has been answered.
    pub fn on_budget(&mut self, transport: &mut impl Transport, answer: BudgetAnswer) {
        let now = self.now;
        let Some(index) = self.addresses.find(&answer.address) else { return };
        let [a, b, c, d, e, f, g, h, ..] = transport.random();
        let jitter = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let Some(guard) = self.guard_mut(index) else { return };
        match &answer.look {
            Ok(look) => guard.lease.looked(now, answer.id, look),
            Err(failure) => guard.lease.lost(now, answer.id, failure.cause, jitter),
        }
        let state = guard.lease.view(now).state;
        let before = std::mem::replace(&mut guard.state, state);
        match (&answer.look, before) {
            (Err(failure), LeaseState::Unused | LeaseState::Held) if state == LeaseState::Lost => {
                warn!(
                    address = %shown(&answer.address),
                    "no control connection for server_budget, no server connection is opened until there is one: {}",
                    failure.log_text
                );
            }
            (Ok(_), LeaseState::Lost) => {
                info!(address = %shown(&answer.address), "the control connection of server_budget is back");
            }
            _ => {}
        }
        self.evict_excess(transport, index);
        self.feed_budget(transport, index);
        self.arm_budget(index, now);
    }

    /// Every budget, for the console and the metrics.
    #[must_use]
    pub fn budget_rows(&self) -> Vec<BudgetRow> {
        let mut rows: Vec<BudgetRow> =
            self.addresses.indices().filter_map(|address| self.budget_row(address)).collect();
        rows.sort_by(|a, b| a.address.cmp(&b.address));
        rows
    }

    fn budget_row(&self, index: AddressIndex) -> Option<BudgetRow> {
        let address = self.addresses.get(index)?;
        let guard = address.guard.as_ref()?;
        let estimates = |kind, scopes: &HashMap<String, Scoped>| -> Vec<EstimateRow> {
            let of = |(name, scoped): (&String, &Scoped)| {
                let limit = scoped.estimate.limit(self.now)?;
                Some(EstimateRow { kind, name: name.clone(), limit, used: scoped.attempts + scoped.standing })
            };
            scopes.iter().filter_map(of).collect()
        };
        let mut estimates =
            [estimates("role", &guard.roles), estimates("database", &guard.databases)].concat();
        estimates.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        Some(BudgetRow {
            address: shown(&address.address),
            lease: guard.lease.view(self.now),
            wanted: self.demand(index).wanted,
            estimates,
        })
    }

    /// What is due at a budget: an order, or a later look.
    pub(super) fn step_budget(&mut self, transport: &mut impl Transport, index: AddressIndex) {
        let now = self.now;
        let demand = self.demand(index);
        let Some(guard) = self.guard_mut(index) else { return };
        match guard.lease.next_step(now, demand) {
            Step::Ask(order) => self.ask_budget(transport, index, order),
            Step::At(at) => self.arm_budget(index, at),
            Step::Rest => {}
        }
    }

    /// Ends the sessions of servers that nobody goes to any more.
    pub(super) fn leave_budgets(&mut self, transport: &mut impl Transport) {
        for address in std::mem::take(&mut self.addresses.left) {
            if self.addresses.find(&address).is_none() {
                transport.ask_budget(BudgetRequest::Leave(address));
            }
        }
    }

    /// True if a free server of this pool should go for another pooler's sake.
    pub(super) fn should_give_up(&self, id: PoolId) -> bool {
        let pool = self.pool(id);
        pool.caps[2].is_some() && self.excess(pool.address) > 0
    }

    pub(super) fn is_budget_armed(&self, at: Moment, index: AddressIndex) -> bool {
        self.guard(index).is_some_and(|guard| guard.armed_at == at)
    }

    /// The entry has come up; false if it means nothing any more.
    pub(super) fn disarm_budget(&mut self, at: Moment, index: AddressIndex) -> bool {
        let Some(guard) = self.guard_mut(index).filter(|guard| guard.armed_at == at) else { return false };
        guard.armed_at = NEVER;
        true
    }

    fn arm_budget(&mut self, index: AddressIndex, at: Moment) {
        let Some(guard) = self.guard_mut(index) else { return };
        if at < guard.armed_at {
            guard.armed_at = at;
            self.push_timer(at, Key::Budget(index));
        }
    }

    fn ask_budget(&mut self, transport: &mut impl Transport, index: AddressIndex, order: Order) {
        let general = &self.config.general;
        let login = if order.begins_session { general.server_connect_timeout } else { Duration::ZERO };
        let settings = &self.budget_settings;
        let secret = self.config.secrets.get(&settings.user).cloned();
        let Some(address) = self.addresses.get(index) else { return };
        let target = Arc::new(Target {
            address: address.address.clone(),
            database: settings.database.clone(),
            user: settings.user.clone(),
            secret: secret.map_or(ServerSecret::None, ServerSecret::Configured),
            parameters: vec![("application_name".to_owned(), BUDGET_APPLICATION.to_owned())],
            connect_query: None,
        });
        transport.ask_budget(BudgetRequest::Carry { target, order, limit: login + ORDER_LIMIT });
    }

    /// What the pools at this server need.
    fn demand(&self, index: AddressIndex) -> Demand {
        let mut demand = Demand::default();
        for id in self.pools_of_server(index) {
            let pool = self.pool(id);
            if pool.removed {
                continue;
            }
            demand.wanted += pool.wanted().min(pool.room()).min(self.scope_room(id));
            demand.minimum += pool.minimum();
        }
        demand
    }

    /// There may be places: those below their minimum come first, then those with the fewest servers.
    fn feed_budget(&mut self, transport: &mut impl Transport, index: AddressIndex) {
        let wanting = |id: &PoolId| self.pool(*id).wanted() > 0;
        let mut pools: Vec<PoolId> = self.pools_of_server(index).filter(wanting).collect();
        pools.sort_by_key(|&id| {
            let pool = self.pool(id);
            (pool.total() >= pool.minimum(), pool.total())
        });
        for id in pools {
            self.refill(transport, id);
        }
    }

    /// Another pooler should get what this one has too much of: servers at rest go now, those in use when they are free.
    fn evict_excess(&mut self, transport: &mut impl Transport, index: AddressIndex) {
        for _ in 0..self.excess(index) {
            let oldest = |id| self.pool(id).idle.front().map(|&server| (self.pool(id).total(), server));
            let victim: Option<(usize, ServerId)> =
                self.pools_of_server(index).filter_map(oldest).max_by_key(|(total, _)| *total);
            let Some((_, server)) = victim else { return };
            self.close_server(transport, server, CloseCause::Evicted);
        }
    }

    fn excess(&self, index: AddressIndex) -> usize {
        let excess = self.guard(index).map_or(0, |guard| guard.lease.excess());
        if excess == 0 {
            return 0;
        }
        let closing: usize = self.pools_of_server(index).map(|id| self.pool(id).closing).sum();
        excess.saturating_sub(closing)
    }

    fn guard(&self, index: AddressIndex) -> Option<&Guard> {
        self.addresses.get(index)?.guard.as_deref()
    }

    fn guard_mut(&mut self, index: AddressIndex) -> Option<&mut Guard> {
        self.addresses.get_mut(index)?.guard.as_deref_mut()
    }
}

/// True if the attempt may have left a backend: the server has neither refused it nor failed to be there.
fn may_live(failure: &OpenFailure) -> bool {
    failure.sqlstate.is_none()
        && !matches!(failure.cause, Cause::Refused | Cause::Unreachable | Cause::NoAddress)
}

fn shown(address: &ServerAddress) -> String {
    match address {
        ServerAddress::Tcp { host, port } => format!("{host}:{port}"),
        ServerAddress::Unix { directory, port } => format!("{}/.s.PGSQL.{port}", directory.display()),
    }
}

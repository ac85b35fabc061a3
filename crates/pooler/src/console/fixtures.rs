//! Rows for tests.

use crate::console::source::Source;
use crate::control::ReactorSilent;
use pooling::seam::ClientAddress;
use pooling::snapshot::{
    AttemptCounts, BudgetRow, ClientRow, EventRow, HolderRow, LaneRow, LockRow, OverloadRow, Overview,
    PatienceRow, PoolCounters, PoolRow, ServerRow, StallRow, StormRow,
};
use settings::pooler::PoolerConfig;
use std::sync::Arc;
use std::time::Duration;

/// A pool in which nothing happens.
pub(crate) fn pool_row(database: &str, user: &str) -> PoolRow {
    PoolRow {
        database: database.into(),
        user: user.into(),
        cl_active: 0,
        cl_waiting: 0,
        cl_active_cancel_req: 0,
        sv_active: 0,
        sv_active_cancel: 0,
        sv_being_canceled: 0,
        sv_idle: 0,
        sv_pinned: 0,
        sv_used: 0,
        sv_tested: 0,
        sv_login: 0,
        sv_closing: 0,
        maxwait: Duration::ZERO,
        pool_mode: "transaction",
        pool_size: 20,
        sv_behind_lock: 0,
        running_limit: None,
        failure: None,
        stall: None,
        since_last_answer: None,
        overload: OverloadRow::default(),
        counters: PoolCounters::default(),
    }
}

/// A process in which nothing happens.
pub(crate) fn overview(pools: Vec<PoolRow>) -> Overview {
    Overview {
        pools,
        clients: 0,
        clients_in_login: 0,
        client_limit: 100,
        clients_refused: 0,
        logins_refused: 0,
        probes: 0,
        protocol_errors: 0,
        budgets: Vec::new(),
        lanes: Vec::new(),
        attempts: AttemptCounts::default(),
        storms: [("attempts", 0, 0), ("lost_requests", 0, 0)],
        shutting_down: false,
    }
}

/// A client that is idle.
pub(crate) fn client_row(database: &str, user: &str) -> ClientRow {
    ClientRow {
        user: user.into(),
        database: database.into(),
        state: "idle",
        address: ClientAddress::Tcp {
            peer: ([192, 0, 2, 7], 40_000).into(),
            local: ([192, 0, 2, 1], 6432).into(),
        },
        connected: Duration::from_secs(90),
        requested: Duration::from_secs(5),
        wait: Duration::ZERO,
        link: None,
        application_name: "psql".into(),
        prepared_statements: 2,
        tls: String::new(),
        id: 7,
    }
}

/// A server that is idle.
pub(crate) fn server_row(database: &str, user: &str) -> ServerRow {
    ServerRow {
        user: user.into(),
        database: database.into(),
        state: "idle",
        peer: Some(([192, 0, 2, 9], 5432).into()),
        port: 5432,
        connected: Duration::from_secs(90),
        requested: Duration::from_secs(5),
        close_needed: false,
        link: None,
        remote_pid: 4711,
        application_name: "".into(),
        prepared_statements: 3,
        tls: String::new(),
        id: 1 << 31,
    }
}

/// A client that holds a server.
pub(crate) fn holder_row(database: &str, user: &str) -> HolderRow {
    HolderRow {
        user: user.into(),
        database: database.into(),
        address: ClientAddress::Unix { port: 6432, uid: 1000, pid: 99 },
        application_name: "report".into(),
        reason: "idle in transaction",
        held: Duration::from_millis(12_500),
        waiting: 3,
        remote_pid: 4711,
        id: 7,
    }
}

/// A storm of logins that fail.
pub(crate) fn event_row(database: &str, user: &str) -> EventRow {
    EventRow {
        event: "login_failed",
        cause: "refused",
        database: database.into(),
        user: user.into(),
        count: 12,
        first_ago: Duration::from_millis(2_500),
        last_ago: Duration::ZERO,
        detail: String::new(),
    }
}

/// A budget that is used up.
pub(crate) fn budget_row(address: &str) -> BudgetRow {
    let terms = budget::Terms {
        size: budget::Size::Connections(30),
        reserved: 5,
        chunk: 4,
        settle: Duration::from_millis(500),
    };
    let lease = budget::Lease::new(terms, overload::Moment::ORIGIN).view(overload::Moment::ORIGIN);
    BudgetRow {
        address: address.to_owned(),
        lease: budget::LeaseView { used: 12, places: 12, usable: 11, losses: 2, ..lease },
        wanted: 7,
        estimates: vec![pooling::snapshot::EstimateRow {
            kind: "role",
            name: "app".to_owned(),
            limit: 9,
            used: 8,
        }],
    }
}

/// A storm that goes on.
pub(crate) fn storm_row(user: &str) -> StormRow {
    StormRow {
        what: "attempts",
        user: user.into(),
        application_name: "cron".into(),
        origin: "192.0.2.7".to_owned(),
        rate_milli: 250_050,
        greatest_rate_milli: 300_000,
        usual_rate_milli: 2_000,
        began: Duration::from_secs(30),
        ended: None,
    }
}

/// A lane in which somebody waits.
pub(crate) fn lane_row(database: &str, user: &str, lane: &str) -> LaneRow {
    LaneRow {
        database: database.into(),
        user: user.into(),
        lane: lane.into(),
        weight: 4,
        share_percent: 50,
        guaranteed: 10,
        waiting: 3,
        active: 7,
        maxwait: Duration::from_millis(1_500),
        served: 99,
    }
}

/// A report keeps an ALTER TABLE waiting, behind which servers of this pool wait.
pub(crate) fn lock_row(database: &str, user: &str) -> LockRow {
    let party = |pid, state: &str, statement: &str| locks::Party {
        pid,
        mode: locks::LockMode::AccessExclusive,
        is_relation: true,
        state: state.to_owned(),
        user: "migrator".to_owned(),
        application: "psql".to_owned(),
        statement: statement.to_owned(),
        is_ours: false,
    };
    LockRow {
        database: database.into(),
        user: user.into(),
        pile: locks::PileUp {
            pool: pooling::connection::PoolId(0),
            behind: 19,
            live: 20,
            longest: Some(Duration::from_millis(1_500)),
            relation: Some("public.orders".to_owned()),
            waiter: Some(party(77, "active", "ALTER TABLE orders ADD note text")),
            blockers: vec![party(55, "idle in transaction", "SELECT ?"), party(56, "active", "SELECT ?")],
        },
        seen: Duration::from_millis(750),
        waiting: 40,
    }
}

/// Gives the same rows every time, or none at all.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) pools: Vec<PoolRow>,
    pub(crate) clients: Vec<ClientRow>,
    pub(crate) servers: Vec<ServerRow>,
    pub(crate) holders: Vec<HolderRow>,
    pub(crate) budgets: Vec<BudgetRow>,
    pub(crate) events: Vec<EventRow>,
    pub(crate) lanes: Vec<LaneRow>,
    pub(crate) locks: Vec<LockRow>,
    pub(crate) patience: Vec<PatienceRow>,
    pub(crate) storms: Vec<StormRow>,
    pub(crate) stalls: Vec<StallRow>,
    pub(crate) config: Option<Arc<PoolerConfig>>,
    pub(crate) shutting_down: bool,
    pub(crate) silent: bool,
}

impl Rows {
    fn answer<T>(&self, rows: T) -> Result<T, ReactorSilent> {
        if self.silent { Err(ReactorSilent) } else { Ok(rows) }
    }
}

impl Source for Rows {
    async fn pools(&self) -> Result<Vec<PoolRow>, ReactorSilent> {
        self.answer(self.pools.clone())
    }

    async fn clients(&self) -> Result<Vec<ClientRow>, ReactorSilent> {
        self.answer(self.clients.clone())
    }

    async fn servers(&self) -> Result<Vec<ServerRow>, ReactorSilent> {
        self.answer(self.servers.clone())
    }

    async fn holders(&self) -> Result<Vec<HolderRow>, ReactorSilent> {
        self.answer(self.holders.clone())
    }

    async fn budgets(&self) -> Result<Vec<BudgetRow>, ReactorSilent> {
        self.answer(self.budgets.clone())
    }

    async fn events(&self) -> Result<Vec<EventRow>, ReactorSilent> {
        self.answer(self.events.clone())
    }

    async fn lanes(&self) -> Result<Vec<LaneRow>, ReactorSilent> {
        self.answer(self.lanes.clone())
    }

    async fn locks(&self) -> Result<Vec<LockRow>, ReactorSilent> {
        self.answer(self.locks.clone())
    }

    async fn patience(&self) -> Result<Vec<PatienceRow>, ReactorSilent> {
        self.answer(self.patience.clone())
    }

    async fn storms(&self) -> Result<Vec<StormRow>, ReactorSilent> {
        self.answer(self.storms.clone())
    }

    async fn stalls(&self) -> Result<Vec<StallRow>, ReactorSilent> {
        self.answer(self.stalls.clone())
    }

    async fn overview(&self) -> Result<Overview, ReactorSilent> {
        self.answer(Overview { shutting_down: self.shutting_down, ..overview(self.pools.clone()) })
    }

    async fn config(&self) -> Result<Arc<PoolerConfig>, ReactorSilent> {
        self.config.clone().ok_or(ReactorSilent)
    }
}

//! The schedule: which of all the things that may happen happens next.

use super::client::{Customer, Expected};
use super::random::Random;
use super::server::Backend;
use super::wire::Wire;
use budget::{Chunk, Look, Order, ServerLimits};
use locks::{LockMode, Party, PileUp};
use overload::Moment;
use overload::cause::Cause;
use pooling::connection::{ClientId, ConnectionId, ServerId};
use pooling::seam::{
    BudgetAnswer, BudgetRequest, CancelQuery, ClientAddress, LocksSeen, OpenFailure, OpenServer,
    OpenedServer, Target,
};
use pooling::{Engine, Shutdown};
use settings::pooler::PoolerConfig;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

const POOL_SIZE: usize = 3;
/// What the server's budget leaves to the pool, in scenarios with one.
const BUDGET_PLACES: usize = 2;
const STEPS: usize = 250;
/// Far more than any schedule needs to come to rest.
const SETTLE_STEPS: usize = 20_000;

#[derive(Clone, Copy, Debug, Default)]
pub struct Scenario {
    pub client_deaths: bool,
    pub cancels: bool,
    pub login_failures: bool,
    pub server_deaths: bool,
    pub stopped_readers: bool,
    pub stopped_servers: bool,
    pub reloads: bool,
    /// Session pooling now and then, and at each reload perhaps another mode.
    pub sessions: bool,
    /// A reserve, resets after each transaction, servers that are replaced in the middle of a session, notices.
    pub limits: bool,
    /// Clients that wait only so long, and any overload policy.
    pub overload: bool,
    /// The server has a budget, smaller than the pool; its control connection is slow, and is lost now and then.
    pub budget: bool,
}

pub struct World {
    scenario: Scenario,
    random: Random,
    engine: Engine,
    wire: Wire,
    now: Moment,
    customers: BTreeMap<ClientId, Customer>,
    backends: BTreeMap<ServerId, Backend>,
    logins: Vec<OpenServer>,
    /// Cancel requests on their way, and whether their signal has been given.
    cancels: Vec<(CancelQuery, bool)>,
    control: Control,
    has_budget: bool,
    next_customer: usize,
    next_pid: i32,
    answers: u64,
}

impl World {
    pub fn new(seed: u64, scenario: &Scenario) -> Self {
        let now = Moment::from_micros(1_000_000);
        let mut random = Random::new(seed);
        let mut engine = Engine::new(settings_at_random(&mut random, scenario), 1_000, now);
        let mut wire = Wire::new(seed);
        engine.start(&mut wire);
        Self {
            scenario: *scenario,
            random,
            engine,
            wire,
            now,
            customers: BTreeMap::new(),
            backends: BTreeMap::new(),
            logins: Vec::new(),
            cancels: Vec::new(),
            control: Control::default(),
            has_budget: scenario.budget,
            next_customer: 0,
            next_pid: 100,
            answers: 0,
        }
    }

    /// Runs the schedule; returns how many rows reached their clients.
    pub fn run(mut self) -> u64 {
        for _ in 0..STEPS {
            self.step();
            self.collect();
            self.check();
        }
        self.come_to_rest();
        self.answers
    }

    fn step(&mut self) {
        // Each step is a turn of its own.
        self.pass_time(Duration::from_micros(1));
        match self.random.below(20) {
            0 | 1 if self.customers.len() < 12 => self.connect(),
            2..=4 => self.ask(),
            5..=8 => self.deliver_from_client(),
            9..=11 => self.work(),
            12..=14 => self.deliver_from_server(),
            15 => self.finish_login(),
            16 => {
                self.move_cancel();
                self.answer_order();
            }
            17 if self.scenario.client_deaths => self.kill_client(),
            18 if self.scenario.cancels => self.ask_for_cancel(),
            19 => self.rare(),
            _ => {
                let micros = self.random.below(20_000) as u64;
                self.pass_time(Duration::from_micros(micros));
            }
        }
    }

    fn rare(&mut self) {
        match self.random.below(7) {
            6 => self.finish_look(),
            0 if self.scenario.server_deaths => {
                if let Some(id) = self.pick_server() {
                    self.end_server(id);
                }
            }
            1 if self.scenario.stopped_readers => {
                if let Some(id) = self.pick_client() {
                    self.wire.stopped.insert(id.into());
                }
            }
            2 => self.resume_readers(),
            3 if self.scenario.stopped_servers => {
                if let Some(id) = self.pick_server() {
                    self.wire.stopped.insert(id.into());
                }
            }
            4 if self.scenario.reloads => {
                let config = settings_at_random(&mut self.random, &self.scenario);
                self.engine.reload(&mut self.wire, config);
            }
            _ => {
                let millis = self.random.below(4_000) as u64;
                self.pass_time(Duration::from_millis(millis));
            }
        }
    }

    fn pass_time(&mut self, span: Duration) {
        self.now = self.now + span;
        self.engine.advance(self.now);
        if self.engine.next_deadline().is_some_and(|at| at <= self.now) {
            self.engine.on_deadline(&mut self.wire);
        }
    }

    fn connect(&mut self) {
        let address =
            ClientAddress::Tcp { peer: ([127, 0, 0, 1], 1).into(), local: ([127, 0, 0, 1], 6432).into() };
        let id = self.engine.accept(&mut self.wire, address).expect("room for a client");
        let patience = match self.next_customer % 3 {
            0 if self.scenario.overload => "holdfast.patience\x0020ms\0",
            1 if self.scenario.overload => "holdfast.patience\x000.2s\0",
            _ => "",
        };
        self.customers.insert(id, Customer::new(self.next_customer, patience));
        self.next_customer += 1;
    }

    fn pick_client(&mut self) -> Option<ClientId> {
        let count = self.customers.len();
        (count > 0).then(|| *self.customers.keys().nth(self.random.below(count)).expect("in range"))
    }

    fn pick_server(&mut self) -> Option<ServerId> {
        let count = self.backends.len();
        (count > 0).then(|| *self.backends.keys().nth(self.random.below(count)).expect("in range"))
    }

    fn ask(&mut self) {
        let Some(id) = self.pick_client() else { return };
        let customer = self.customers.get_mut(&id).expect("picked");
        if customer.has_transaction() {
            customer.finish_transaction();
        } else if customer.logged_in && (customer.is_at_rest() || !awaits_copy(customer)) {
            customer.ask(&mut self.random, !self.scenario.sessions);
        }
    }

    fn deliver_from_client(&mut self) {
        if let Some(id) = self.pick_client() {
            let most = self.part_size();
            self.deliver_client(id, most);
        }
    }

    fn part_size(&mut self) -> usize {
        let greatest = [12, 12, 6_000, 64 * 1024][self.random.below(4)];
        1 + self.random.below(greatest)
    }

    fn deliver_client(&mut self, id: ClientId, most: usize) -> bool {
        if self.wire.not_reading.contains(&id.into()) {
            return false;
        }
        let Some(customer) = self.customers.get_mut(&id) else { return false };
        let count = customer.outbox.len().min(most);
        if count == 0 {
            return false;
        }
        let bytes: Vec<u8> = customer.outbox.drain(..count).collect();
        self.engine.on_bytes(&mut self.wire, id.into(), &bytes);
        true
    }

    fn work(&mut self) {
        if let Some(id) = self.pick_server() {
            self.backends.get_mut(&id).expect("picked").work();
        }
    }

    fn deliver_from_server(&mut self) {
        if let Some(id) = self.pick_server() {
            let most = self.part_size();
            self.deliver_server(id, most);
        }
    }

    fn deliver_server(&mut self, id: ServerId, most: usize) -> bool {
        if self.wire.not_reading.contains(&id.into()) {
            return false;
        }
        let Some(backend) = self.backends.get_mut(&id) else { return false };
        if backend.has_output() {
            let bytes = backend.take_output(most);
            self.engine.on_bytes(&mut self.wire, id.into(), &bytes);
            return true;
        }
        if backend.ended {
            self.end_server(id);
            return true;
        }
        false
    }

    fn end_server(&mut self, id: ServerId) {
        self.backends.remove(&id);
        self.engine.on_end(&mut self.wire, id.into());
    }

    fn finish_login(&mut self) {
        if self.logins.is_empty() {
            return;
        }
        let at = self.random.below(self.logins.len());
        let request = self.logins.remove(at);
        if self.scenario.login_failures && self.random.chance(30) {
            let failure = OpenFailure {
                cause: [Cause::Refused, Cause::StartingUp, Cause::TimedOut][self.random.below(3)],
                sqlstate: None,
                client_text: "connect failed".to_owned(),
                log_text: "connect failed".to_owned(),
            };
            self.engine.on_server_failed(&mut self.wire, request.attempt, failure);
            return;
        }
        self.next_pid += 1;
        let opened = OpenedServer {
            process_id: self.next_pid,
            secret_key: vec![1, 2, 3, 4],
            parameters: vec![
                ("server_version".into(), "15.0".into()),
                ("application_name".into(), String::new()),
                ("client_encoding".into(), "UTF8".into()),
            ],
            leftover: Vec::new(),
            peer: None,
            login_time: Duration::from_millis(5),
        };
        if let Some(id) = self.engine.on_server_opened(request.attempt, &opened) {
            self.backends.insert(id, Backend::default());
            self.engine.on_server_installed(&mut self.wire, id, &[]);
        }
    }

    /// A look at the locks ends: nobody saw anything, all is well, or a pool is said to pile up. Some never end.
    fn finish_look(&mut self) {
        let Some(request) = self.wire.looks.pop() else { return };
        let pool = request.pools.first().filter(|_| self.random.below(2) == 0);
        let pile = pool.map(|ours| PileUp {
            pool: ours.pool,
            behind: ours.pids.len(),
            live: ours.live,
            longest: None,
            relation: None,
            waiter: None,
            blockers: vec![Party {
                pid: 1,
                mode: LockMode::AccessExclusive,
                is_relation: true,
                state: String::new(),
                user: String::new(),
                application: String::new(),
                statement: String::new(),
                is_ours: false,
            }],
        });
        let piles = (self.random.below(4) > 0).then(|| pile.into_iter().collect());
        let took = Duration::from_millis(self.random.below(400) as u64);
        let seen = LocksSeen { look: request.look, piles, acted: Vec::new(), took };
        self.engine.on_locks_seen(&mut self.wire, seen);
    }

    fn move_cancel(&mut self) {
        if self.cancels.is_empty() {
            return;
        }
        let at = self.random.below(self.cancels.len());
        let (request, signalled) = &mut self.cancels[at];
        if *signalled {
            let server = request.server;
            self.cancels.remove(at);
            self.engine.on_cancel_ended(&mut self.wire, server);
        } else {
            *signalled = true;
            if let Some(backend) = self.backends.get_mut(&request.server) {
                backend.signal(self.random.chance(30));
            }
        }
    }

    fn kill_client(&mut self) {
        let Some(id) = self.pick_client() else { return };
        match self.random.below(4) {
            // Says goodbye, behind whatever it has sent so far.
            0 => {
                let customer = self.customers.get_mut(&id).expect("picked");
                customer.outbox.extend(b"X\0\0\0\x04");
                return;
            }
            1 => self.engine.on_hangup(&mut self.wire, id.into(), true),
            // Half of what it wanted to say gets through.
            2 => {
                self.deliver_client(id, 7);
                self.engine.on_end(&mut self.wire, id.into());
            }
            _ => self.engine.on_end(&mut self.wire, id.into()),
        }
        self.leave(id);
    }

    fn leave(&mut self, id: ClientId) {
        if let Some(customer) = self.customers.remove(&id) {
            self.answers += customer.answers;
        }
    }

    fn ask_for_cancel(&mut self) {
        let Some(id) = self.pick_client() else { return };
        let customer = self.customers.get_mut(&id).expect("picked");
        let Some(key) = customer.key else { return };
        customer.cancelled = true;
        let address =
            ClientAddress::Tcp { peer: ([127, 0, 0, 1], 2).into(), local: ([127, 0, 0, 1], 6432).into() };
        let requester = self.engine.accept(&mut self.wire, address).expect("room for a cancel request");
        let mut packet = 16u32.to_be_bytes().to_vec();
        packet.extend(80_877_102u32.to_be_bytes());
        packet.extend(key);
        self.engine.on_bytes(&mut self.wire, requester.into(), &packet);
    }

    fn resume_readers(&mut self) {
        let stopped: Vec<ConnectionId> = self.wire.stopped.drain().collect();
        for id in stopped {
            if let Some(kept) = self.wire.kept.remove(&id) {
                self.wire.sent.entry(id).or_default().extend(kept);
                self.engine.on_flushed(&mut self.wire, id);
            }
        }
    }

    /// The control connection of the budget does what it has been told, or is lost.
    fn answer_order(&mut self) {
        let Some((target, order)) = self.control.orders.pop_front() else { return };
        let is_lost = self.scenario.budget && self.random.below(12) == 0;
        let look = if is_lost {
            self.control.chunks.clear();
            Err(OpenFailure {
                cause: Cause::Crashed,
                sqlstate: None,
                client_text: "lost".to_owned(),
                log_text: "lost".to_owned(),
            })
        } else {
            Ok(self.control.carry_out(&order))
        };
        let answer = BudgetAnswer { address: target.address.clone(), id: order.id, look };
        self.engine.on_budget(&mut self.wire, answer);
    }

    /// Carries what the engine has sent to whom it is for.
    fn collect(&mut self) {
        for request in self.wire.budgets.drain(..) {
            if let BudgetRequest::Carry { target, order, .. } = request {
                self.control.orders.push_back((target, order));
            }
        }
        self.logins.append(&mut self.wire.opens);
        self.cancels.extend(self.wire.cancels.drain(..).map(|request| (request, false)));
        let sent: HashMap<ConnectionId, Vec<u8>> = std::mem::take(&mut self.wire.sent);
        for (id, bytes) in sent {
            match id {
                ConnectionId::Client(id) => {
                    if let Some(customer) = self.customers.get_mut(&id) {
                        customer.receive(&bytes);
                    }
                }
                ConnectionId::Server(id) => {
                    if let Some(backend) = self.backends.get_mut(&id) {
                        backend.receive(&bytes);
                    }
                }
            }
        }
        for id in self.wire.shut.clone() {
            // The end of our side is the end of a backend, once it has done what it had read.
            if let ConnectionId::Server(id) = id
                && let Some(backend) = self.backends.get_mut(&id)
                && !backend.has_work()
            {
                backend.ended = true;
            }
        }
        for id in std::mem::take(&mut self.wire.closed) {
            self.wire.shut.remove(&id);
            self.wire.stopped.remove(&id);
            self.wire.not_reading.remove(&id);
            match id {
                ConnectionId::Client(id) => self.leave(id),
                ConnectionId::Server(id) => {
                    self.backends.remove(&id);
                }
            }
        }
    }

    fn check(&self) {
        let rows = self.engine.pool_rows();
        for row in &rows {
            let total = row.sv_active
                + row.sv_idle
                + row.sv_used
                + row.sv_tested
                + row.sv_being_canceled
                + row.sv_login
                + row.sv_closing;
            assert!(total <= POOL_SIZE, "{total} servers in a pool of {POOL_SIZE}: {row:?}");
            assert_eq!(row.counters.dead_handoffs, 0, "a server was given to a client that had gone");
        }
        if self.has_budget {
            let count = self.backends.len() + self.logins.len();
            assert!(count <= BUDGET_PLACES, "{count} servers and logins, {:?}", self.engine.budget_rows());
        }
        assert!(self.backends.len() <= POOL_SIZE, "{} backends", self.backends.len());
    }

    /// No more faults: everything that is still there must finish.
    fn come_to_rest(&mut self) {
        let sessions = self.scenario.sessions;
        self.scenario = Scenario::default();
        for _ in 0..SETTLE_STEPS {
            if sessions {
                // Who is done with a session gives its server to the next.
                for customer in self.customers.values_mut().filter(|customer| customer.is_at_rest()) {
                    customer.outbox.extend(b"X\0\0\0\x04");
                }
            }
            self.resume_readers();
            for id in self.customers.keys().copied().collect::<Vec<_>>() {
                if let Some(customer) = self.customers.get_mut(&id) {
                    customer.finish_transaction();
                }
                self.pass_time(Duration::from_micros(1));
                self.deliver_client(id, usize::MAX);
            }
            self.collect();
            while !self.logins.is_empty() {
                self.finish_login();
            }
            for id in self.backends.keys().copied().collect::<Vec<_>>() {
                if let Some(backend) = self.backends.get_mut(&id) {
                    backend.work();
                }
                self.deliver_server(id, usize::MAX);
                self.collect();
            }
            self.move_cancel();
            self.answer_order();
            self.collect();
            self.check();
            if self.is_at_rest() {
                break;
            }
            self.pass_time(Duration::from_millis(10));
        }
        let restless: Vec<_> = self.customers.iter().filter(|(_, customer)| !customer.is_at_rest()).collect();
        assert!(
            self.is_at_rest(),
            "not at rest: {restless:?}\nheld: {:?}\nservers: {:?}\nbackends: {:?}",
            self.engine.holder_rows(),
            self.engine.server_rows(),
            self.backends
        );
        for row in self.engine.pool_rows() {
            assert_eq!((row.sv_active, row.cl_waiting), (0, 0), "{row:?}");
        }
        self.stop();
        for id in self.customers.keys().copied().collect::<Vec<_>>() {
            self.leave(id);
        }
    }

    /// Stops as INT does: with everybody at rest, nothing holds it up.
    fn stop(&mut self) {
        self.engine.shut_down(&mut self.wire, Shutdown::WaitForServers);
        for _ in 0..10 {
            self.collect();
            for id in self.backends.keys().copied().collect::<Vec<_>>() {
                if let Some(backend) = self.backends.get_mut(&id) {
                    backend.work();
                }
                self.deliver_server(id, usize::MAX);
            }
        }
        assert!(self.engine.is_finished(), "still there: {:?}", self.engine.server_rows());
    }

    fn is_at_rest(&self) -> bool {
        self.cancels.is_empty()
            && self.logins.is_empty()
            && self.customers.values().all(Customer::is_at_rest)
            && self.engine.pool_rows().iter().all(|row| {
                row.cl_waiting == 0
                    && row.sv_active + row.sv_used + row.sv_tested + row.sv_being_canceled + row.sv_closing
                        == 0
            })
    }
}

/// The control connection, and the locks that it holds.
#[derive(Default)]
struct Control {
    orders: VecDeque<(Arc<Target>, Order)>,
    chunks: Vec<Chunk>,
}

impl Control {
    /// All processes end with their connections here.
    fn carry_out(&mut self, order: &Order) -> Look {
        if order.begins_session {
            self.chunks.clear();
        }
        self.chunks.retain(|chunk| !order.release.contains(chunk));
        let held = self.chunks.clone();
        self.chunks.extend(order.candidates.iter().filter(|chunk| !held.contains(chunk)).take(order.take));
        Look {
            mine: self.chunks.clone(),
            controls: 1,
            limits: ServerLimits { connections: 100, reserved: 3 },
            ..Look::default()
        }
    }
}

/// One of many configurations; what all have in common is the size of the pool.
fn settings_at_random(random: &mut Random, scenario: &Scenario) -> Arc<PoolerConfig> {
    let host = 1 + random.below(2);
    let check_delay = [0, 3, 30][random.below(3)];
    let lifetime = [3600, 3600, 1, 0][random.below(4)];
    let policy = ["cancel", "cancel", "finish", "close"][random.below(4)];
    let buffer = [4_096, 65_536][random.below(2)];
    let minimum = random.below(2);
    // Fewer than there are texts, or more.
    let statements = 1 + random.below(6);
    let mode = if scenario.sessions {
        ["session", "session", "transaction"][random.below(3)]
    } else {
        "transaction"
    };
    let (reserve, further) = if scenario.limits {
        let lanes = ["", "[lanes]\nall = user=u weight=3 share_percent=50\n"][random.below(2)];
        let further = format!(
            "reserve_pool_timeout = 0.0{}\nserver_reset_query_always = {}\nserver_fast_close = {}\n\
             query_wait_notify = 0.0{}\npool_idle_timeout = {}\nmax_db_client_connections = 9\n{lanes}",
            random.below(10),
            random.below(2),
            random.below(2),
            random.below(10),
            random.below(3),
        );
        (random.below(POOL_SIZE), further)
    } else {
        (0, String::new())
    };
    let overload = if scenario.overload { ["on", "on", "observe", "off"][random.below(4)] } else { "off" };
    let budget = if scenario.budget {
        let chunk = 1 + random.below(2);
        format!(
            "server_budget = {}\nbudget_reserved = 1\nbudget_chunk = {chunk}\nbudget_settle = 0.1\nbudget_user = g\n",
            BUDGET_PLACES + 1
        )
    } else {
        String::new()
    };
    let size = POOL_SIZE - reserve;
    let text = format!(
        "[databases]\ndb = host=127.0.0.{host} user=u\n[pgbouncer]\nlisten_addr = 127.0.0.1\nauth_type = any\npool_mode = {mode}\n\
         default_pool_size = {size}\nreserve_pool_size = {reserve}\nquery_wait_timeout = 120\nlog_connections = 0\nlog_disconnections = 0\n\
         log_stats = 0\nlog_pooler_errors = 0\nserver_check_delay = {check_delay}\nserver_lifetime = {lifetime}\n\
         client_disconnect = {policy}\nwaiter_buffer = {buffer}\nmin_pool_size = {minimum}\n\
         max_prepared_statements = {statements}\noverload_policy = {overload}\n{budget}{further}"
    );
    Arc::new(settings::pooler::parse_ini(&text).expect("the simulation's configuration").config)
}

/// A client that awaits CopyInResponse sends nothing else: what follows depends on it.
fn awaits_copy(customer: &Customer) -> bool {
    customer.expected.iter().any(|expected| matches!(expected, Expected::CopyIn { .. }))
        || !customer.outbox.is_empty() && customer.expected.is_empty()
}

//! One budget for the server that several pools go to; the control connection is the test's.

use super::bench::{Bench, READY, config_of, done, query};
use budget::{Chunk, Look, Order, Other, ServerLimits};
use overload::cause::{Cause, Scope};
use pooling::connection::ClientId;
use pooling::seam::{BudgetAnswer, BudgetRequest, OpenFailure, ServerSecret};
use pooling::snapshot::BudgetRow;
use std::time::Duration;

const DATABASES: &str = "one = host=h user=u\ntwo = host=h user=u\nthree = host=h user=u\n";

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn bench(extra: &str) -> Bench {
    Bench::new(config_of(
        DATABASES,
        &format!(
            "server_budget = 10\nbudget_reserved = 2\nbudget_chunk = 2\nbudget_settle = 0.2\nbudget_user = guard\n{extra}"
        ),
    ))
}

/// The server and all others as they would be.
#[derive(Default)]
struct Server {
    mine: Vec<Chunk>,
    others: Vec<Other>,
    unowned: Vec<i32>,
    present: Vec<i32>,
    orders: Vec<Order>,
}

impl Server {
    /// Answers every order that is there; as many chunks are free as `free` says.
    fn answer(&mut self, bench: &mut Bench, free: usize) {
        bench.due();
        for request in std::mem::take(&mut bench.wire.budgets) {
            let BudgetRequest::Carry { target, order, .. } = request else { panic!("an order") };
            assert_eq!((target.user.as_str(), target.database.as_str()), ("guard", "postgres"));
            assert!(matches!(target.secret, ServerSecret::None));
            self.mine.retain(|chunk| !order.release.contains(chunk));
            let mine = self.mine.clone();
            let untaken = order.candidates.iter().filter(|chunk| !mine.contains(chunk));
            self.mine.extend(untaken.take(order.take.min(free)));
            let look = Look {
                mine: self.mine.clone(),
                others: self.others.clone(),
                unowned: self.unowned.clone(),
                controls: 1 + self.others.len(),
                present: self.present.clone(),
                limits: ServerLimits { connections: 100, reserved: 3 },
            };
            let answer = BudgetAnswer { address: target.address.clone(), id: order.id, look: Ok(look) };
            self.orders.push(order);
            bench.engine.on_budget(&mut bench.wire, answer);
        }
    }

    /// Time passes, and every order is answered.
    fn pass(&mut self, bench: &mut Bench, span: Duration, free: usize) {
        for _ in 0..span.as_millis() / 10 {
            bench.pass(millis(10));
            self.answer(bench, free);
        }
    }
}

fn row(bench: &Bench) -> BudgetRow {
    bench.engine.budget_rows().remove(0)
}

/// A logged-in client; what has to be opened for it is opened.
fn login(bench: &mut Bench, server: &mut Server, database: &str) -> ClientId {
    let client = bench.connect(database);
    server.pass(bench, millis(800), 9);
    while !bench.wire.opens.is_empty() {
        bench.open();
    }
    assert!(bench.heard(client).ends_with(READY), "the client is not let in");
    client
}

#[test]
fn no_login_begins_before_the_budget_has_a_place_and_none_beyond_it() {
    let mut bench = bench("default_pool_size = 20\n");
    let mut server = Server::default();
    let first = bench.connect("one");
    assert!(bench.wire.opens.is_empty(), "the server has not been asked");
    server.answer(&mut bench, 9);
    assert!(bench.wire.opens.is_empty(), "a fresh place rests");
    server.pass(&mut bench, millis(300), 9);
    assert_eq!(bench.wire.opens.len(), 1);
    bench.open();
    assert!(bench.heard(first).ends_with(READY));
    // Twenty want one each; eight is what the pools may have.
    let clients: Vec<ClientId> = (0..20).map(|_| bench.connect("one")).collect();
    clients.iter().for_each(|&client| bench.say(client, &query("select 1")));
    let mut opened = 1;
    for _ in 0..100 {
        server.pass(&mut bench, millis(20), 9);
        while !bench.wire.opens.is_empty() {
            opened += 1;
            bench.open();
        }
    }
    assert_eq!(opened, 8);
    let row = row(&bench);
    assert_eq!((row.lease.used, row.lease.places, row.lease.is_exhausted), (8, 8, true));
    assert_eq!(bench.pool("one").cl_waiting, 12, "the others wait, and nobody is refused");
}

#[test]
fn a_pool_without_any_server_gets_one_that_rests_elsewhere() {
    let mut bench = bench("");
    let mut server =
        Server { others: vec![Other { places: 4, servers: 4, is_starving: false }], ..Server::default() };
    let first = login(&mut bench, &mut server, "one");
    let others: Vec<ClientId> = (0..3).map(|_| bench.connect("one")).collect();
    let all: Vec<ClientId> = others.into_iter().chain([first]).collect();
    all.iter().for_each(|&client| bench.say(client, &query("select 1")));
    server.pass(&mut bench, millis(600), 1);
    while !bench.wire.opens.is_empty() {
        bench.open();
    }
    let servers: Vec<_> = bench.engine.server_rows();
    assert_eq!(servers.len(), 4);
    for server in &servers {
        if let pooling::connection::ConnectionId::Server(id) =
            pooling::connection::ConnectionId::from_token(server.id)
        {
            bench.answer(id, &done());
        }
    }
    assert_eq!(bench.pool("one").sv_idle, 4);
    // No chunk is free any more.
    let guest = bench.connect("two");
    server.pass(&mut bench, millis(300), 0);
    assert_eq!(bench.pool("one").sv_closing, 1, "one goes, and one is enough");
    let closing = bench.engine.server_rows().into_iter().find(|row| row.state == "closing").unwrap();
    let pooling::connection::ConnectionId::Server(id) =
        pooling::connection::ConnectionId::from_token(closing.id)
    else {
        panic!("a server")
    };
    assert!(bench.wire.opens.is_empty(), "it counts until its end");
    bench.end(id);
    server.pass(&mut bench, millis(50), 0);
    bench.open();
    assert!(bench.heard(guest).ends_with(READY));
}

#[test]
fn a_connection_that_ends_by_itself_counts_until_its_process_is_seen_gone() {
    let mut bench = bench("");
    let mut server = Server::default();
    login(&mut bench, &mut server, "one");
    let id = bench.only_server();
    let pid = bench.engine.server_rows()[0].remote_pid;
    server.present = vec![pid];
    bench.end(id);
    server.pass(&mut bench, millis(400), 9);
    assert_eq!((row(&bench).lease.used, row(&bench).lease.doubtful), (1, 1));
    assert!(server.orders.iter().any(|order| order.doubtful == [pid]));
    server.present.clear();
    server.pass(&mut bench, millis(400), 9);
    assert_eq!(row(&bench).lease.used, 0);
}

#[test]
fn a_lost_control_connection_stops_logins_and_refuses_nobody() {
    let mut bench = bench("server_login_retry = 1\n");
    let mut server = Server::default();
    let client = login(&mut bench, &mut server, "one");
    bench.say(client, &query("select 1"));
    let second = bench.connect("one");
    bench.say(second, &query("select 1"));
    bench.due();
    for _ in 0..40 {
        bench.pass(millis(100));
        for request in std::mem::take(&mut bench.wire.budgets) {
            let BudgetRequest::Carry { target, order, .. } = request else { panic!("an order") };
            let failure = OpenFailure {
                cause: Cause::Refused,
                sqlstate: None,
                client_text: "connect failed".to_owned(),
                log_text: "connect failed".to_owned(),
            };
            let answer = BudgetAnswer { address: target.address.clone(), id: order.id, look: Err(failure) };
            bench.engine.on_budget(&mut bench.wire, answer);
        }
    }
    assert!(bench.wire.opens.is_empty());
    assert_eq!((row(&bench).lease.state.label(), bench.pool("one").cl_waiting), ("lost", 1));
    // What is open serves on.
    bench.answer(bench.only_server(), &done());
    assert_eq!(bench.pool("one").cl_waiting, 0);
}

#[test]
fn too_many_connections_of_a_role_or_a_database_shrink_that_estimate_alone() {
    let databases = "one = host=h user=u\ntwo = host=h user=u\nthree = host=h user=v\n";
    let settings = "server_budget = 50\nbudget_settle = 0.2\nbudget_user = guard\nserver_login_retry = 60\n";
    let mut bench = Bench::new(config_of(databases, settings));
    let mut server = Server::default();
    let first = login(&mut bench, &mut server, "one");
    bench.say(first, &query("select 1"));
    let second = bench.connect("one");
    bench.say(second, &query("select 1"));
    server.pass(&mut bench, millis(300), 9);
    bench.fail(Cause::TooManyConnections { scope: Scope::Role });
    let estimates = row(&bench).estimates;
    assert_eq!((estimates.len(), estimates[0].kind, estimates[0].limit), (1, "role", 1));
    // Neither the same role in another database nor its own gets a second one now; another role does.
    let (same, other) = (bench.connect("two"), bench.connect("three"));
    server.pass(&mut bench, millis(3_000), 9);
    assert_eq!(bench.wire.opens.len(), 1);
    bench.open();
    assert!(bench.heard(other).ends_with(READY));
    assert!(!bench.heard(same).ends_with(READY));
    // It grows back to what had been asked for, and is forgotten.
    server.pass(&mut bench, millis(12_000), 9);
    assert_eq!((bench.wire.opens.len(), row(&bench).estimates.len()), (2, 0));
}

#[test]
fn a_server_that_nobody_goes_to_any_more_keeps_no_control_connection() {
    let settings =
        "server_budget = 10\nbudget_user = guard\nautodb_idle_timeout = 1\nserver_idle_timeout = 1\n";
    let mut bench = Bench::new(config_of("* = host=h user=u\n", settings));
    let mut server = Server::default();
    let client = login(&mut bench, &mut server, "one");
    bench.end(client);
    server.pass(&mut bench, millis(1_500), 9);
    let id = bench.only_server();
    bench.end(id);
    server.pass(&mut bench, millis(20), 9);
    let mut left = false;
    for _ in 0..500 {
        bench.pass(millis(10));
        left |= bench.wire.budgets.iter().any(|request| matches!(request, BudgetRequest::Leave(_)));
        if !left {
            server.answer(&mut bench, 9);
        }
    }
    assert!(left && bench.engine.budget_rows().is_empty());
}

#[test]
fn without_a_budget_no_order_is_given_and_no_timer_is_set_for_one() {
    let mut bench = Bench::new(config_of(DATABASES, ""));
    let client = bench.connect("one");
    bench.open();
    assert!(bench.heard(client).ends_with(READY));
    bench.pass(Duration::from_secs(30));
    assert!(bench.wire.budgets.is_empty() && bench.engine.budget_rows().is_empty());
}

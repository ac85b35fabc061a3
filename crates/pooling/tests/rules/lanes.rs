//! Classes of work: whose turn it is for a server.

use super::bench::{Bench, IN_TRANSACTION, READY, config, done, message, query, startup};
use pooling::connection::{ClientId, ServerId};
use pooling::snapshot::LaneRow;
use std::time::Duration;

const LANES: &str = "default_pool_size = 2\n[lanes]\nweb = application_name=web* weight=3 share_percent=50\n\
                     backlog = application_name=batch*\n";

/// A client of this name, logged in.
fn client_as(bench: &mut Bench, name: &str) -> ClientId {
    let client = bench.accept();
    bench.say(client, &startup(&format!("db\0application_name\0{name}")));
    if !bench.wire.opens.is_empty() {
        bench.open();
    }
    assert!(bench.heard(client).ends_with(READY), "the client is not let in");
    client
}

fn lane(bench: &Bench, name: &str) -> LaneRow {
    bench.engine.lane_rows().into_iter().find(|row| &*row.lane == name).expect("the lane")
}

/// What a server is asked for beside the names that are set on it; those are answered.
fn asked(bench: &mut Bench, server: ServerId) -> String {
    loop {
        let heard = String::from_utf8_lossy(&bench.heard(server)).into_owned();
        let set = heard.find("SET \"application_name\"='").map(|at| &heard[at + 24..]);
        let Some(name) = set.and_then(|rest| rest.split('\'').next()) else { return heard };
        let report = message(b'S', format!("application_name\0{name}\0").as_bytes());
        bench.answer(server, &[report, done()].concat());
        let rest = heard.rsplit("';\0").next().unwrap_or_default();
        if !rest.is_empty() {
            return rest.to_owned();
        }
    }
}

/// Two servers, both busy with a backlog of which `waiting` more wait.
fn busy(extra: &str, waiting: usize) -> (Bench, Vec<ServerId>) {
    let mut bench = Bench::new(config(extra));
    let mut servers = Vec::new();
    let clients: Vec<_> = (0..waiting + 2).map(|_| client_as(&mut bench, "batch")).collect();
    for client in clients {
        bench.say(client, &query("backlog"));
        while !bench.wire.opens.is_empty() {
            servers.push(bench.open());
        }
    }
    let mut servers: Vec<_> = bench
        .engine
        .server_rows()
        .iter()
        .filter_map(|row| match pooling::connection::ConnectionId::from_token(row.id) {
            pooling::connection::ConnectionId::Server(id) => Some(id),
            pooling::connection::ConnectionId::Client(_) => None,
        })
        .collect();
    servers.sort_by_key(|server| format!("{server:?}"));
    assert_eq!(servers.len(), 2);
    for &server in &servers {
        assert!(asked(&mut bench, server).contains("backlog"));
    }
    assert_eq!(bench.pool("db").cl_waiting, waiting);
    (bench, servers)
}

#[test]
fn a_backlog_of_five_hundred_does_not_hold_up_one_who_comes_later() {
    let (mut bench, servers) = busy(&format!("max_client_conn = 600\n{LANES}"), 500);
    let web = client_as(&mut bench, "web-1");
    bench.say(web, &query("page"));
    assert_eq!((lane(&bench, "web").waiting, lane(&bench, "backlog").waiting), (1, 500));
    bench.answer(servers[0], &done());
    assert!(
        asked(&mut bench, servers[0]).contains("page"),
        "the next free server is for the lane without one"
    );
    assert_eq!((lane(&bench, "web").active, lane(&bench, "backlog").active), (1, 1));
    assert_eq!(lane(&bench, "web").guaranteed, 1, "half of two");
}

#[test]
fn without_lanes_it_is_first_come_first_served() {
    let (mut bench, servers) = busy("default_pool_size = 2\n", 3);
    let web = client_as(&mut bench, "web-1");
    bench.say(web, &query("page"));
    for turn in 0..4 {
        let server = servers[turn % 2];
        bench.answer(server, &done());
        assert_eq!(asked(&mut bench, server).contains("page"), turn == 3);
    }
    assert!(bench.engine.lane_rows().is_empty());
}

#[test]
fn an_idle_lane_keeps_no_server_from_the_others() {
    let (mut bench, servers) = busy(LANES, 2);
    for &server in &servers {
        bench.answer(server, &done());
        assert!(asked(&mut bench, server).contains("backlog"));
    }
    assert_eq!((lane(&bench, "backlog").active, bench.pool("db").sv_idle), (2, 0));
    assert_eq!(lane(&bench, "backlog").served, 4);
}

#[test]
fn weights_say_who_has_how_many_turns_beyond_what_is_guaranteed() {
    let lanes = "default_pool_size = 2\n[lanes]\nweb = application_name=web* weight=3\nbacklog = application_name=batch*\n";
    let (mut bench, servers) = busy(lanes, 20);
    for _ in 0..20 {
        let web = client_as(&mut bench, "web");
        bench.say(web, &query("page"));
    }
    let mut pages = 0;
    for turn in 0..16 {
        let server = servers[turn % 2];
        bench.answer(server, &done());
        pages += usize::from(asked(&mut bench, server).contains("page"));
    }
    assert!((11..=13).contains(&pages), "three of four, to within a turn: {pages}");
}

#[test]
fn a_client_that_sets_its_name_changes_lane_with_its_next_request() {
    let (mut bench, servers) = busy(LANES, 3);
    let client = client_as(&mut bench, "web");
    bench.say(client, &query("SET application_name = 'batch'"));
    assert_eq!(lane(&bench, "web").waiting, 1);
    bench.answer(servers[0], &done());
    asked(&mut bench, servers[0]);
    bench.answer(
        servers[0],
        &[message(b'S', b"application_name\0batch-7\0"), message(b'C', b"SET\0"), READY.to_vec()].concat(),
    );
    bench.say(client, &query("more"));
    assert_eq!(
        (lane(&bench, "web").waiting, lane(&bench, "backlog").waiting),
        (0, 3),
        "two of before, and this one"
    );
}

#[test]
fn a_client_whose_name_no_pattern_meets_is_in_the_plain_lane() {
    let (mut bench, _) = busy(LANES, 0);
    let client = client_as(&mut bench, "psql");
    bench.say(client, &query("SELECT 1"));
    assert_eq!(lane(&bench, "default").waiting, 1);
    bench.end(client);
    assert_eq!(lane(&bench, "default").waiting, 0);
}

#[test]
fn patterns_of_user_and_database_decide_too() {
    let lanes = "default_pool_size = 2\n[lanes]\nother = user=v\nmine = user=u database=d*\n";
    let (bench, _) = busy(lanes, 1);
    assert_eq!((lane(&bench, "mine").waiting, lane(&bench, "mine").active), (1, 2));
}

#[test]
fn a_reload_sorts_those_who_wait_into_the_new_lanes_in_the_order_of_their_coming() {
    let (mut bench, servers) = busy("default_pool_size = 2\nquery_wait_timeout = 10\n", 2);
    bench.pass(Duration::from_secs(2));
    let web = client_as(&mut bench, "web");
    bench.say(web, &query("page"));
    let new = config(&format!("query_wait_timeout = 10\n{LANES}"));
    bench.engine.reload(&mut bench.wire, new);
    assert_eq!((lane(&bench, "web").waiting, lane(&bench, "backlog").waiting), (1, 2));
    assert_eq!((lane(&bench, "web").active, lane(&bench, "backlog").active), (0, 2), "those in use count");
    assert_eq!(lane(&bench, "backlog").maxwait, Duration::from_secs(2), "nobody begins anew");
    bench.answer(servers[1], &done());
    assert!(asked(&mut bench, servers[1]).contains("page"));
    // And back: the tickets of those who wait are still good.
    bench.engine.reload(&mut bench.wire, config("default_pool_size = 2\nquery_wait_timeout = 10\n"));
    assert_eq!(bench.pool("db").cl_waiting, 2);
    bench.pass(Duration::from_secs(8));
    assert_eq!(bench.pool("db").counters.wait_timeouts, 2);
}

#[test]
fn a_transaction_counts_for_its_lane_until_its_end() {
    let (mut bench, servers) = busy(LANES, 1);
    let web = client_as(&mut bench, "web");
    bench.say(web, &query("BEGIN"));
    bench.answer(servers[0], &done());
    asked(&mut bench, servers[0]);
    bench.answer(servers[0], &[message(b'C', b"BEGIN\0"), IN_TRANSACTION.to_vec()].concat());
    assert_eq!(lane(&bench, "web").active, 1);
    bench.say(web, &query("COMMIT"));
    bench.answer(servers[0], &done());
    assert_eq!((lane(&bench, "web").active, lane(&bench, "backlog").active), (0, 2));
}

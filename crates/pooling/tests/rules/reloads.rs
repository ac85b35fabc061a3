//! A new configuration meets what is under way.

use super::bench::{Bench, config, config_of, done, query};
use std::time::Duration;

#[test]
fn a_login_to_an_address_that_has_changed_is_followed_by_one_to_the_new_address() {
    let mut bench = Bench::new(config("default_pool_size = 1\n"));
    let client = bench.connect("db");
    let new = config_of("db = host=127.0.0.2 user=u\n", "default_pool_size = 1\n");
    bench.engine.reload(&mut bench.wire, new);
    let old = bench.wire.opens.remove(0);
    assert!(bench.finish(&old).is_none());
    bench.due();
    let server = bench.open();
    assert!(bench.heard(client).ends_with(b"Z\0\0\0\x05I"));
    bench.say(client, &query("SELECT 1"));
    assert_eq!(bench.heard(server), query("SELECT 1"));
}

#[test]
fn logins_are_counted_at_the_address_that_they_went_to() {
    let extra = "default_pool_size = 1\nserver_login_concurrency = 1\n";
    let mut bench = Bench::new(config(extra));
    let client = bench.connect("db");
    // There and back, each time with a login under way.
    for _ in 0..5 {
        let new = config_of("db = host=127.0.0.2 user=u\n", extra);
        bench.engine.reload(&mut bench.wire, new);
        let old = bench.wire.opens.remove(0);
        bench.finish(&old);
        bench.pass(Duration::from_secs(1));
        assert_eq!(bench.wire.opens.len(), 1, "the new address is free");
        bench.engine.reload(&mut bench.wire, config(extra));
        let old = bench.wire.opens.remove(0);
        bench.finish(&old);
        bench.pass(Duration::from_secs(1));
        assert_eq!(bench.wire.opens.len(), 1, "the old address is free again");
    }
    bench.open();
    assert!(bench.heard(client).ends_with(b"Z\0\0\0\x05I"));
}

#[test]
fn a_database_that_is_gone_keeps_no_servers() {
    let mut bench = Bench::new(config("min_pool_size = 2\n"));
    let server = bench.open();
    let other = config_of("other = host=127.0.0.1\n", "");
    bench.engine.reload(&mut bench.wire, other);
    bench.end(server);
    let login = bench.wire.opens.remove(0);
    assert!(bench.finish(&login).is_none(), "nobody wants the server that was on its way");
    bench.pass(Duration::from_secs(700));
    assert!(bench.wire.opens.is_empty());
    assert!(bench.engine.server_rows().is_empty());
}

#[test]
fn an_idle_limit_that_is_lowered_acts_at_once() {
    let mut bench = Bench::new(config("server_idle_timeout = 600\n"));
    let client = bench.connect("db");
    let server = bench.open();
    bench.say(client, &query("SELECT 1"));
    bench.answer(server, &done());
    bench.engine.reload(&mut bench.wire, config("server_idle_timeout = 5\n"));
    bench.pass(Duration::from_secs(6));
    assert_eq!(bench.pool("db").sv_closing, 1);
}

//! Thousands of seeded random schedules of the whole engine, in virtual time: clients that die at every point, late
//! cancels, slow and failing logins, servers that end, readers that stop, bytes split anywhere.
//!
//! In each schedule no client may ever see a row that is not its own, no query may be cancelled that nobody asked to
//! cancel, the pool never exceeds its size, and once the faults stop everything comes to rest: each live client has
//! its answers, no server is lost.
//!
//! `SEEDS=20000 cargo test -p holdfast-pooling --test schedules` runs more; `SEED=n` runs one.

#![allow(unreachable_pub, reason = "the modules of one test program")]
#![allow(clippy::expect_used, clippy::panic, reason = "a panic is how a schedule fails")]

#[path = "simulation/client.rs"]
mod client;
#[path = "simulation/random.rs"]
mod random;
#[path = "simulation/server.rs"]
mod server;
#[path = "simulation/wire.rs"]
mod wire;
#[path = "simulation/world.rs"]
mod world;

use world::{Scenario, World};

const DEFAULT_SEEDS: u64 = 2_000;

fn run(name: &str, scenario: Scenario) {
    let one = std::env::var("SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(DEFAULT_SEEDS);
    let range = one.map_or(0..seeds, |seed| seed..seed + 1);
    let mut answers = 0;
    for seed in range {
        let outcome = std::panic::catch_unwind(|| World::new(seed, &scenario).run());
        match outcome {
            Ok(count) => answers += count,
            Err(_) => panic!("scenario {name} failed with SEED={seed}"),
        }
    }
    assert!(
        one.is_some() || answers > seeds,
        "the schedules of {name} hardly ever answer anything: {answers}"
    );
}

#[test]
fn clients_die_at_every_point_and_nobody_sees_a_foreign_row() {
    run("deaths", Scenario { client_deaths: true, ..Scenario::default() });
}

#[test]
fn late_cancels_hit_nobody_else() {
    run("cancels", Scenario { client_deaths: true, cancels: true, ..Scenario::default() });
}

#[test]
fn slow_and_failing_logins_and_servers_that_end_leave_nothing_behind() {
    let scenario =
        Scenario { login_failures: true, server_deaths: true, client_deaths: true, ..Scenario::default() };
    run("servers", scenario);
}

#[test]
fn stopped_readers_and_everything_else_at_once() {
    let scenario = Scenario {
        client_deaths: true,
        cancels: true,
        login_failures: true,
        server_deaths: true,
        stopped_readers: true,
        stopped_servers: true,
        reloads: true,
        sessions: false,
        limits: false,
        overload: false,
        budget: false,
    };
    run("everything", scenario);
}

#[test]
fn peers_that_take_nothing_for_a_while_hang_nobody() {
    run("stopped", Scenario { stopped_readers: true, stopped_servers: true, ..Scenario::default() });
}

#[test]
fn reloads_at_any_moment_strand_nobody() {
    run("reloads", Scenario { reloads: true, client_deaths: true, ..Scenario::default() });
}

#[test]
fn sessions_keep_their_servers_and_leave_them_clean() {
    run("sessions", Scenario { sessions: true, client_deaths: true, cancels: true, ..Scenario::default() });
}

#[test]
fn the_pool_mode_may_change_under_way() {
    let scenario = Scenario {
        sessions: true,
        reloads: true,
        client_deaths: true,
        server_deaths: true,
        ..Scenario::default()
    };
    run("modes", scenario);
}

#[test]
fn limits_of_every_kind_close_whom_they_are_for_and_lose_nothing() {
    run("limits", Scenario { limits: true, reloads: true, ..Scenario::default() });
    run(
        "limits-sessions",
        Scenario { limits: true, sessions: true, client_deaths: true, ..Scenario::default() },
    );
    let everything = Scenario {
        client_deaths: true,
        cancels: true,
        login_failures: true,
        server_deaths: true,
        stopped_readers: true,
        stopped_servers: true,
        reloads: true,
        sessions: true,
        limits: true,
        overload: true,
        budget: false,
    };
    run("limits-everything", everything);
}

#[test]
fn requests_that_are_told_to_go_leave_their_sessions_whole() {
    let scenario = Scenario { overload: true, client_deaths: true, reloads: true, ..Scenario::default() };
    run("overload", scenario);
}

#[test]
fn a_budget_smaller_than_the_pool_is_never_exceeded_and_strands_nobody() {
    let scenario = Scenario {
        budget: true,
        client_deaths: true,
        login_failures: true,
        server_deaths: true,
        cancels: true,
        ..Scenario::default()
    };
    run("budget", scenario);
}

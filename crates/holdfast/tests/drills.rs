//! The short forms of the drills, each on a network of its own. They wait more than they work, so some run at once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

/// A drill that the machine was too busy for ends so, and is run again, this often at most.
const NOT_MEASURED: i32 = 75;
const MOST_RUNS: usize = 3;

fn hold(names: &[&str]) {
    // Without a peer: what it shows decides nothing, and costs as much again.
    let start = |name: &&str| {
        let mut drill = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        drill.args(["drill", "--alone", name]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut left = names.to_vec();
    let mut failed = String::new();
    for _ in 0..MOST_RUNS {
        let running: Vec<(&str, Child)> = left.drain(..).map(|name| (name, start(&name))).collect();
        failed.clear();
        for (name, drill) in running {
            let ended = drill.wait_with_output().unwrap();
            if !ended.status.success() {
                failed += &String::from_utf8_lossy(&ended.stderr);
                failed += &String::from_utf8_lossy(&ended.stdout);
            }
            match ended.status.code() {
                Some(0) => {}
                code => {
                    assert_eq!(code, Some(NOT_MEASURED), "{failed}");
                    left.push(name);
                }
            }
        }
        if left.is_empty() {
            return;
        }
    }
    assert!(left.is_empty(), "{failed}");
}

#[test]
fn no_stream_and_no_provider_notices_that_the_database_is_gone() {
    hold(&["database-gone", "pooler-gone", "pooler-stalled"]);
}

#[test]
fn a_slow_database_gets_no_more_work_and_roles_start_without_one() {
    hold(&["database-slow", "start-without-database"]);
}

#[test]
fn lists_of_providers_stay_and_are_said_to_be_stale_when_nobody_builds_them() {
    hold(&["rebuild-stopped"]);
}

#[test]
fn all_come_back_after_a_relay_was_killed_and_none_is_refused_while_relays_are_restarted_in_turn() {
    hold(&["reconnect-storm", "rolling-restart"]);
}

#[test]
fn a_relay_that_is_killed_loses_little_use_and_none_is_charged_twice() {
    hold(&["relay-killed"]);
}

#[test]
fn every_byte_is_billed_once_though_the_database_comes_and_goes() {
    hold(&["database-restarts"]);
}

#[test]
fn relays_are_judged_by_evidence() {
    hold(&["everyone-late", "one-of-two-dead", "record-deleted"]);
}

#[test]
fn one_dead_relay_of_ten_is_removed_and_no_other() {
    hold(&["one-relay-dead"]);
}

#[test]
fn a_cache_that_is_gone_or_moves_costs_freshness_only() {
    hold(&["redis-gone", "slot-moved"]);
}

#[test]
fn streams_of_one_side_of_a_partition_go_on_and_each_provider_has_one_relay_afterwards() {
    let partitioned = drill::scenario::find("partitioned").unwrap();
    match partitioned.missing() {
        None => hold(&["partitioned"]),
        Some(missing) => not_run(&format!("drill partitioned: {missing}")),
    }
}

fn not_run(what: &str) {
    if let Some(list) = std::env::var_os("HOLDFAST_NOT_RUN") {
        writeln!(File::options().append(true).open(list).unwrap(), "{what}").unwrap();
    }
}

#[test]
fn keys_rotate_and_clients_are_put_out_without_anybody_else_noticing() {
    hold(&["key-rotation", "revoked-client"]);
}

#[test]
fn pools_serve_again_after_the_database_stalled_or_restarted_and_callers_left() {
    hold(&["stalled-pools", "frozen-database", "restart", "dying-clients"]);
}

#[test]
fn a_waiting_migration_stops_nobody_else_and_ends() {
    hold(&["waiting-migration"]);
}

#[test]
fn twice_the_load_and_a_slow_database_leave_nothing_behind() {
    hold(&["overload-loop", "slow-database"]);
}

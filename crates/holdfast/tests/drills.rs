//! The short forms of the drills, each on a network of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;

fn holds(name: &str) {
    let drill = Command::new(env!("CARGO_BIN_EXE_holdfast")).args(["drill", name]).output().unwrap();
    let (said, complained) = (String::from_utf8_lossy(&drill.stdout), String::from_utf8_lossy(&drill.stderr));
    assert!(drill.status.success(), "{said}{complained}");
}

#[test]
fn all_come_back_after_a_relay_was_killed() {
    holds("reconnect-storm");
}

#[test]
fn a_relay_that_is_killed_loses_little_use_and_none_is_charged_twice() {
    holds("relay-killed");
}

#[test]
fn every_byte_is_billed_once_though_the_database_comes_and_goes() {
    holds("database-restarts");
}

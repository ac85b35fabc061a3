//! How a network lives and dies.

use crate::house::{House, is_alive, wait_until};
use drill::process::{Signal, signal};
use std::fs;

#[test]
fn a_network_comes_up_survives_the_death_of_its_children_and_goes_in_order() {
    let mut house = House::start();
    assert_eq!(house.psql("select 6 * 7").as_deref(), Some("42"));

    // To be listed is one thing, to work another.
    wait_until("its provider is listed, and has carried a stream", || {
        let providers = house.status()["providers"].clone();
        providers["listed"] == 1 && providers["verified"] == 1 && providers["stale"] == false
    });
    let page = house.holdfast(&["up", "status"]).output().unwrap().stdout;
    let page = String::from_utf8_lossy(&page).into_owned();
    assert!(page.contains("1 listed, 1 of them verified"), "{page}");

    let again = house.holdfast(&["up"]).output().unwrap();
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(!again.status.success() && said.contains(&house.up_pid().to_string()), "a second one: {said}");
    let reset = house.holdfast(&["up", "reset", "--yes"]).output().unwrap();
    assert!(!reset.status.success(), "what runs is not removed");

    for child in ["pooler", "postgres"] {
        let first = house.pid_of(child);
        signal(first, Signal::KILL).unwrap();
        wait_until(child, || house.pid_of(child) != first && house.psql("select 1").as_deref() == Some("1"));
    }
    let status = house.status();
    assert!(status["children"].as_array().unwrap().iter().any(|child| child["restarts"] == 1), "{status}");

    let pids = [house.pid_of("postgres"), house.pid_of("pooler")];
    let stopped = house.holdfast(&["up", "stop"]).output().unwrap();
    assert!(stopped.status.success(), "{}", house.said());
    assert_eq!(house.ended(), Some(0));
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
    let log = fs::read_to_string(house.data().join("log/postgres.log")).unwrap();
    assert!(log.trim_end().ends_with("database system is shut down"), "{log}");
}

/// Nobody is left to stop the children in order: they go by themselves, and the next start finds nothing in its way.
#[test]
fn children_go_with_an_up_that_was_killed_and_the_next_one_has_the_data() {
    let mut house = House::start();
    house.psql("create table kept as select 7 as number").unwrap();
    let pids = [house.pid_of("postgres"), house.pid_of("pooler")];
    signal(house.up_pid(), Signal::KILL).unwrap();
    house.ended();
    wait_until("the children end", || pids.iter().all(|pid| !is_alive(*pid)));
    assert!(house.status().is_null());
    house.start_again();
    assert_eq!(house.psql("select number from kept").as_deref(), Some("7"));
}

#[test]
fn nothing_runs_as_root_and_secrets_are_on_no_command_line() {
    let house = House::start();
    let secrets = fs::read_to_string(house.data().join("secrets.toml")).unwrap();
    let secrets: Vec<_> = secrets.lines().filter_map(|line| line.split('"').nth(1)).collect();
    assert!(secrets.len() >= 4);
    for pid in [house.up_pid(), house.pid_of("postgres"), house.pid_of("pooler")] {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let user = status.lines().find_map(|line| line.strip_prefix("Uid:\t")).unwrap();
        assert!(!user.starts_with("0\t") && !user.contains("\t0"), "{user}");
        let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(secrets.iter().all(|secret| !words.contains(secret)), "{words}");
    }
}

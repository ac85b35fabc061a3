use super::*;
use crate::state::{ChildState, Lock, Phase, State};
use std::os::unix::fs::PermissionsExt as _;

const KIND: Kind = Kind {
    name: "roles",
    stop: Signal::TERM,
    stop_limit: Duration::from_secs(1),
    start_limit: Duration::from_secs(5),
};

/// A folder, a board, and a program that runs this script.
fn stage(script: &str) -> (tempfile::TempDir, DataFolder, Board, Programs) {
    let folder = tempfile::tempdir().unwrap();
    let data = DataFolder::create(folder.path()).unwrap();
    data.folder("log").unwrap();
    let state = State {
        pid: std::process::id(),
        network: None,
        started_at_ms: 0,
        phase: Phase::Starting,
        children: vec![ChildState {
            name: "roles".to_owned(),
            pid: None,
            since_ms: 0,
            restarts: 0,
            last_end: None,
        }],
        lines: None,
    };
    let board = Board::new(data.clone(), Lock::take(&data).unwrap(), state);
    let program = data.file("program");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    (folder, data, board, Programs { holdfast: program, typed: String::new() })
}

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn a_child_that_dies_is_started_again() {
    let (_folder, data, board, programs) = stage("exec sleep 100");
    let kept = Kept::start(KIND, &programs, &data, &board);
    kept.ready(&data, &board, async |_| true).await.unwrap();
    let first = board.pid_of("roles").unwrap();
    kill_process(Pid::from_raw(first as i32).unwrap(), Signal::KILL).unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    let second = loop {
        match board.pid_of("roles") {
            Some(pid) if pid != first => break pid,
            _ => assert!(Instant::now() < end, "it was not started again"),
        }
        sleep(READY_LOOK).await;
    };
    board.child("roles", |child| {
        assert_eq!(child.restarts, 1);
        assert!(child.last_end.as_ref().unwrap().contains('9'), "{:?}", child.last_end);
    });
    kept.stop().await;
    assert!(!is_alive(second));
    assert_eq!(board.pid_of("roles"), None);
}

#[tokio::test]
async fn a_child_that_ends_while_it_starts_is_told_with_the_end_of_its_log() {
    let (_folder, data, board, programs) = stage("echo 'no such database' >&2; exit 3");
    let kept = Kept::start(KIND, &programs, &data, &board);
    let error = kept.ready(&data, &board, async |_| false).await.unwrap_err().to_string();
    assert!(error.contains("exit status: 3") && error.contains("no such database"), "{error}");
    kept.stop().await;
}

#[tokio::test]
async fn a_child_that_does_not_stop_is_killed() {
    let (_folder, data, board, programs) =
        stage("trap '' TERM; touch \"$4/ready\"; while :; do sleep 0.1; done");
    let kept = Kept::start(KIND, &programs, &data, &board);
    let ready = data.file("ready");
    kept.ready(&data, &board, async |_| ready.exists()).await.unwrap();
    let pid = board.pid_of("roles").unwrap();
    kept.stop().await;
    assert!(!is_alive(pid));
}

#[test]
fn a_long_log_is_moved_aside_and_a_tail_begins_with_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("roles.log");
    fs::write(&log, "short").unwrap();
    shorten(&log);
    assert_eq!(tail(&log).unwrap(), "short");
    fs::write(&log, format!("{}\nlast line\n", "x".repeat(MAX_LOG_LEN as usize))).unwrap();
    assert_eq!(tail(&log).unwrap(), "last line\n");
    shorten(&log);
    assert_eq!(fs::metadata(&log).unwrap().len(), 0);
    assert!(fs::metadata(folder.path().join("roles.log.1")).unwrap().len() > MAX_LOG_LEN);
}

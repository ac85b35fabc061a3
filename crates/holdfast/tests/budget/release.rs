//! The release build of the program: what a debug build costs says nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use drill::peer::{Holdfast, PoolerSetup};
use drill::postgres::PostgresOptions;

use crate::support::House;

/// The path of the release build, made if it is not there or not up to date; `HOLDFAST_RELEASE` names another one.
pub(crate) fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("HOLDFAST_RELEASE") {
        return named.into();
    }
    let built = Path::new(env!("CARGO_BIN_EXE_holdfast"));
    let profile = built.parent().unwrap();
    if profile.ends_with("release") {
        return built.to_owned();
    }
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "-p", "holdfast", "--bin", "holdfast", "--target-dir"])
        .arg(profile.parent().unwrap())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(status.unwrap().success(), "the release build failed");
    profile.parent().unwrap().join("release/holdfast")
}

/// The release build in front of a database.
pub(crate) fn house(tune: impl FnOnce(PoolerSetup) -> PoolerSetup) -> House {
    House::build(&Holdfast::new(&program()).unwrap(), PostgresOptions::default(), false, tune)
}

/// The thread of the process that moves the bytes.
pub(crate) fn reactor_thread(pid: u32) -> u32 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let ids = tasks.map(|task| task.unwrap().file_name().to_str().unwrap().parse().unwrap());
    let named = |id: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/task/{id}/comm"))
            .is_ok_and(|name| name.trim() == "reactor")
    };
    ids.into_iter().find(named).expect("a thread named reactor")
}

/// Whether a program is installed.
pub(crate) fn installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

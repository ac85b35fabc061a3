//! One `initdb` a version and machine: its result is kept, and copied for each server.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail, ensure};

use super::{ADMIN_USER, Binaries, DATABASE, USER};
use crate::scratch;
use cluster::Account;

/// Changes whenever what [`build`] does changes, so that an older template is not used.
const GENERATION: u32 = 1;

/// The template's data folder; built if there is none yet. Of several processes that ask at once, one builds.
pub(super) fn prepare(binaries: &Binaries, account: &Account) -> anyhow::Result<PathBuf> {
    let base = scratch::base()?;
    let finished = base.join(format!("template-{}-{GENERATION}", binaries.version()));
    if finished.is_dir() {
        return Ok(finished);
    }
    let lock_path = base.join("template.lock");
    let lock = File::create(&lock_path).with_context(|| format!("cannot make {}", lock_path.display()))?;
    lock.lock().context("cannot lock the template")?;
    if finished.is_dir() {
        return Ok(finished);
    }
    let draft = scratch::Scratch::new("draft", account)?;
    let data = draft.path().join("data");
    build(binaries, account, &data)?;
    fs::rename(&data, &finished).context("cannot put the template in its place")?;
    Ok(finished)
}

/// Copies the template; the copy belongs to `account`.
pub(super) fn copy(template: &Path, data: &Path, account: &Account) -> anyhow::Result<()> {
    let output = account
        .command(Path::new("cp"))
        .args(["-a", "--reflink=auto", "--"])
        .args([template, data])
        .output()
        .context("cannot run cp")?;
    ensure!(output.status.success(), "copying the template: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn build(binaries: &Binaries, account: &Account, data: &Path) -> anyhow::Result<()> {
    let output = account
        .command(&binaries.program("initdb"))
        .args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "--wal-segsize=4"])
        .arg(format!("--username={ADMIN_USER}"))
        .arg("-D")
        .arg(data)
        .output()
        .context("cannot run initdb")?;
    if !output.status.success() {
        bail!(
            "initdb failed: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    single_user(
        binaries,
        account,
        data,
        &[format!("create role {USER} login"), format!("create database {DATABASE} owner {USER}")],
    )
}

/// Runs statements before there is any server to connect to (`postgres --single`, one statement a line).
fn single_user(
    binaries: &Binaries,
    account: &Account,
    data: &Path,
    statements: &[String],
) -> anyhow::Result<()> {
    let mut child = account
        .command(&binaries.program("postgres"))
        .args(["--single", "-c", "fsync=off", "-c", "exit_on_error=on", "-D"])
        .arg(data)
        .arg("postgres")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run postgres --single")?;
    let mut input = child.stdin.take().context("no standard input")?;
    for statement in statements {
        writeln!(input, "{statement}")?;
    }
    drop(input);
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && !said.contains("ERROR:"), "preparing the template failed: {said}");
    Ok(())
}

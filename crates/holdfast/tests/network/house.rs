//! One network in a folder of its own, and what can be asked of it.

use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No test waits longer than this for a network to come up or to go.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(50);

/// Ports of one network, and where the blocks of all networks begin and end.
const PORTS: u16 = 20;
const FIRST_PORT: u16 = 16_000;
const LAST_PORT: u16 = 20_000;

pub(crate) struct House {
    up: Option<Child>,
    folder: TempDir,
    place: PathBuf,
    first_port: u16,
    _ports: File,
}

impl House {
    /// Starts `holdfast up` and waits until it says that it is up.
    pub(crate) fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("hf-up-").tempdir().unwrap();
        // Started by root, it becomes another user, who must be able to pass.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
        let (first_port, _ports) = lease_ports();
        let place = folder.path().join("place");
        fs::create_dir(&place).unwrap();
        let mut house = Self { up: None, folder, place, first_port, _ports };
        house.start_again();
        let owner = fs::metadata(house.data()).unwrap();
        std::os::unix::fs::chown(&house.place, Some(owner.uid()), Some(owner.gid())).unwrap();
        house
    }

    pub(crate) fn start_again(&mut self) {
        let log = File::create(self.folder.path().join("up.out")).unwrap();
        let child = self
            .holdfast(&["up", "--first-port", &self.first_port.to_string()])
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.up = Some(child);
        let end = Instant::now() + PATIENCE;
        while self.status_code() != 0 {
            let ended = self.up.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < end, "{ended:?}: {}", self.said());
            rest();
        }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// What `up` has written so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("up.out")).unwrap_or_default()
    }

    /// The program with `--data` behind its words.
    pub(crate) fn holdfast(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command.args(words).arg("--data").arg(self.data()).stdin(Stdio::null());
        command
    }

    pub(crate) fn status(&self) -> Value {
        let output = self.holdfast(&["up", "status", "--json"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn status_code(&self) -> i32 {
        self.holdfast(&["up", "status"]).output().unwrap().status.code().unwrap()
    }

    /// The process of a child; 0 while it waits to be started.
    pub(crate) fn pid_of(&self, child: &str) -> u32 {
        let status = self.status();
        let children = status["children"].as_array().unwrap();
        let found = children.iter().find(|found| found["name"] == child).unwrap();
        u32::try_from(found["pid"].as_u64().unwrap_or(0)).unwrap()
    }

    pub(crate) fn up_pid(&self) -> u32 {
        self.up.as_ref().unwrap().id()
    }

    /// Asks the database by the line that `up` printed; `None` if it is not answered.
    pub(crate) fn psql(&self, sql: &str) -> Option<String> {
        let status = self.status();
        let line = status["lines"]["psql"].as_str()?;
        let output = self.shell(&format!("PGCONNECT_TIMEOUT=5 {line} -X -At -c '{sql}'"));
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    /// A folder that belongs to whoever the network runs as: what a user types is run there, as that user.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    pub(crate) fn program(&self) -> &'static str {
        env!("CARGO_BIN_EXE_holdfast")
    }

    /// Runs a line as a user would paste it.
    pub(crate) fn shell(&self, line: &str) -> Output {
        shell_as(line, &self.place).output().unwrap()
    }

    /// A code for a provider.
    pub(crate) fn code(&self) -> String {
        let output = self.holdfast(&["up", "code"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Waits for `up` to end, and says with which code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let mut up = self.up.take().unwrap();
        let mut code = None;
        wait_until("`up` ends", || {
            code = up.try_wait().unwrap();
            code.is_some()
        });
        code.unwrap().code()
    }
}

/// A block of ports that no other test has, in this process or another.
fn lease_ports() -> (u16, File) {
    (FIRST_PORT..LAST_PORT)
        .step_by(usize::from(PORTS))
        .find_map(|first| {
            let lock = File::create(std::env::temp_dir().join(format!("hf-ports-{first}"))).unwrap();
            lock.try_lock().is_ok().then_some((first, lock))
        })
        .unwrap()
}

impl Drop for House {
    fn drop(&mut self) {
        if let Some(mut up) = self.up.take() {
            // Orderly, so that no server stays behind.
            let _ = self.holdfast(&["up", "stop"]).output();
            let _ = up.kill();
            let _ = up.wait();
        }
    }
}

/// A line of a shell in that folder; if the test is root's, as the folder's owner.
pub(crate) fn shell_as(line: &str, place: &Path) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let owner = fs::metadata(place).unwrap();
    if rustix::process::geteuid().is_root() && owner.uid() != 0 {
        command.uid(owner.uid()).gid(owner.gid());
    }
    command
}

pub(crate) fn is_alive(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A process that nobody has asked for is a zombie, and does nothing.
    state.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

pub(crate) fn wait_until(what: &str, mut true_now: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !true_now() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        rest();
    }
}

fn rest() {
    std::thread::sleep(LOOK);
}

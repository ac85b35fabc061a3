//! The program as an owner runs it: join by a code from standard input, up, status, pause, a stop by a signal.

use crate::relay_support::echo;
use crate::support::{Home, SOON, allow};
use cluster::Account;
use drill::name_server::{NameServer, Reply};
use drill::process::{Signal, signal};
use provider::Status;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;
use trust::JoinCode;

/// A folder of an account that is not root, and the program in it: the build's folder may be closed to others.
struct Machine {
    account: Account,
    folder: TempDir,
    up: Option<Child>,
}

impl Machine {
    fn new() -> Self {
        let account = Account::unprivileged().unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = folder.path().join("holdfast");
        if fs::hard_link(env!("CARGO_BIN_EXE_holdfast"), &program).is_err() {
            fs::copy(env!("CARGO_BIN_EXE_holdfast"), &program).unwrap();
        }
        let home = folder.path().join("home");
        fs::create_dir(&home).unwrap();
        account.give(&home).unwrap();
        Self { account, folder, up: None }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn state(&self) -> PathBuf {
        self.home().join(".local/state/holdfast/provider")
    }

    fn provider(&self, arguments: &[&str]) -> Command {
        let mut command = self.account.command(&self.folder.path().join("holdfast"));
        command.env("HOME", self.home()).arg("provider").args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.provider(arguments).output().unwrap()
    }

    fn status(&self) -> Option<Status> {
        serde_json::from_slice(&self.run(&["status", "--json"]).stdout).ok()
    }

    fn write(&self, path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        self.account.give(path).unwrap();
    }

    async fn until(&self, what: &str, stands: impl Fn(&Status) -> bool) {
        let begun = Instant::now();
        while !self.status().is_some_and(|status| stands(&status)) {
            assert!(begun.elapsed() < SOON, "not {what}: {:#?}", self.status());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(mut up) = self.up.take() {
            let _ = up.kill();
            let _ = up.wait();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_joins_runs_asks_pauses_and_stops_a_provider() {
    let home = Home::start().await;
    let target = echo().await;
    let mut machine = Machine::new();
    let dns = NameServer::start(|_| Reply::NoSuchName).unwrap();
    let code = JoinCode::generate().unwrap().reveal();

    // The code comes by standard input: it is on no command line, in no file and in no log.
    let link = home.api.link().to_string();
    let mut joining = machine.provider(&["join", &link, "--country", "de"]);
    let mut child =
        joining.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{code}\n").as_bytes()).unwrap();
    let joined = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&joined.stdout).into_owned();
    assert!(joined.status.success() && said.contains("next: holdfast provider up"), "{joined:?}");
    let again = machine.provider(&["join", &link]).env("HOLDFAST_JOIN_CODE", &code).output().unwrap();
    assert!(String::from_utf8_lossy(&again.stderr).contains("already"), "{again:?}");

    machine.write(&machine.state().join("provider.toml"), &allow(&[target]));
    let log = fs::File::create(machine.folder.path().join("out")).unwrap();
    machine.up = Some(machine.provider(&["up"]).stderr(log).spawn().unwrap());
    machine.until("connected", |status| status.link.state == "connected").await;
    let second = machine.run(&["up"]);
    assert!(
        !second.status.success() && String::from_utf8_lossy(&second.stderr).contains("in use"),
        "{second:?}"
    );

    let status = machine.status().unwrap();
    let secret = fs::read(machine.state().join("identity")).unwrap();
    let mut stream = home
        .open_at(
            status.provider.unwrap().parse().unwrap(),
            trust::Identity::from_secret(&secret).unwrap().public().seal_key(),
            &target.to_string(),
        )
        .await
        .unwrap();
    stream.write_all(b"through the program").await.unwrap();
    let mut back = [0; 19];
    stream.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"through the program");

    let screen = machine.run(&["status"]);
    let screen = String::from_utf8_lossy(&screen.stdout).into_owned();
    assert!(
        screen.contains("connected 127.0.0.1") && screen.contains("1 now") && screen.contains("WARNING"),
        "{screen}"
    );
    assert!(machine.run(&["cap", "100GB"]).status.success());
    assert_eq!(machine.status().unwrap().limits.month_bytes, Some(100_000_000_000));
    machine.write(&machine.state().join("provider.toml"), "[egress]\nports = \"lots\"\n");
    let reload = machine.run(&["reload"]);
    assert!(String::from_utf8_lossy(&reload.stderr).contains("line 2"), "{reload:?}");
    machine.write(
        &machine.state().join("provider.toml"),
        &format!("[limits]\nstreams = 7\n[dns]\nservers = [\"{}\"]\n", dns.address()),
    );
    assert!(machine.run(&["reload"]).status.success());
    assert_eq!(machine.status().unwrap().limits.streams, 7);

    let doctor = machine.run(&["doctor", "--json"]);
    let findings: Vec<serde_json::Value> = serde_json::from_slice(&doctor.stdout).unwrap();
    let health =
        |about: &str| findings.iter().find(|finding| finding["about"] == about).unwrap()["health"].clone();
    for about in ["user", "configuration", "link", "clock", "server", "own addresses", "descriptors", "names"]
    {
        assert_eq!(health(about), "fine", "{findings:#?}");
    }

    assert!(machine.run(&["pause"]).status.success());
    drop(stream);
    machine.until("disconnected", |status| status.link.state == "resting").await;
    assert!(machine.run(&["resume"]).status.success());
    machine.until("connected", |status| status.link.state == "connected").await;

    let mut up = machine.up.take().unwrap();
    signal(up.id(), Signal::TERM).unwrap();
    assert!(up.wait().unwrap().success());
    assert!(!machine.run(&["status"]).status.success(), "it does not run: exit code 1");
    assert!(!machine.status().unwrap().running);
    let logs = String::from_utf8_lossy(&machine.run(&["logs"]).stdout).into_owned();
    assert!(logs.contains("connected") && logs.contains("provider down"), "{logs}");
    let everything = [said, logs, fs::read_to_string(machine.folder.path().join("out")).unwrap()].concat();
    assert!(!everything.contains(&code), "the code was logged: {everything}");
}

#[test]
fn root_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for arguments in
        [&["up"][..], &["join", "holdfast://x:1/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]]
    {
        let output =
            Command::new(env!("CARGO_BIN_EXE_holdfast")).arg("provider").args(arguments).output().unwrap();
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains("root"), "{output:?}");
    }
}

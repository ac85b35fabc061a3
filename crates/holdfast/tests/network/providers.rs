//! Providers that join by the printed command, and customers who do not notice when one of them goes.

use crate::house::{House, wait_until};
use serde_json::Value;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A new stream must find another provider within this time.
const MOVED_WITHIN: Duration = Duration::from_secs(3);

#[test]
fn the_printed_line_fetches_a_page_through_a_local_provider() {
    let house = House::start();
    let before = opened(&house, &house.data().join("provider"));
    assert!(curl(&house).contains("came through a provider"), "{}", house.said());
    assert!(opened(&house, &house.data().join("provider")) > before);
    // The sealed way is no detour around the rules: nothing else of this machine is reached.
    let port = house.status()["lines"]["join_link"].as_str().unwrap().rsplit_once('/').unwrap().0.to_owned();
    let api = port.trim_start_matches("holdfast://").to_owned();
    let line = house.status()["lines"]["curl"].as_str().unwrap().to_owned();
    let target = line.rsplit_once(' ').unwrap().0.to_owned() + &format!(" -sS -m 10 http://{api}/");
    let refused = house.shell(&target);
    assert!(!refused.status.success(), "{}", String::from_utf8_lossy(&refused.stdout));
}

#[test]
fn a_code_lets_one_provider_into_the_network_of_the_link_and_no_other() {
    let house = House::start();
    let link = house.status()["lines"]["join_link"].as_str().unwrap().to_owned();
    let code = house.code();
    let join = |folder: &str, link: &str| {
        house.shell(&format!("echo {code} | {} provider join {link} --state {folder}", house.program()))
    };
    // Another network's name: whoever answers there is not believed, and is not told the code.
    let (address, network) = link.rsplit_once('/').unwrap();
    let other = if network.starts_with('a') { "b" } else { "a" };
    let stranger = join("stranger", &format!("{address}/{other}{}", &network[1..]));
    let said = String::from_utf8_lossy(&stranger.stderr).into_owned();
    assert!(!stranger.status.success() && said.contains("is not the api of this network"), "{said}");
    let first = join("first", &link);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    let second = join("second", &link);
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && said.contains("code_invalid"), "{said}");
    // On a command line it could be read by everybody.
    let typed = house.shell(&format!("{} provider join {link} {code} --state third", house.program()));
    assert_eq!(typed.status.code(), Some(64));
}

#[test]
fn a_second_provider_joins_by_the_printed_command_and_streams_move_when_one_goes() {
    let house = House::start();
    let mut second = Second::join(&house);
    let own = house.data().join("provider");

    // Only the second takes streams.
    let paused = Instant::now();
    assert!(
        house
            .shell(&format!("{} provider pause --state {}", house.program(), own.display()))
            .status
            .success()
    );
    let before = opened(&house, &second.state());
    assert!(comes_again(&house, paused) < MOVED_WITHIN);
    assert!(opened(&house, &second.state()) > before);

    // Only the first.
    assert!(
        house
            .shell(&format!("{} provider resume --state {}", house.program(), own.display()))
            .status
            .success()
    );
    wait_until("our own provider is back", || status(&house, &own)["link"]["state"] == "connected");
    let before = opened(&house, &own);
    let gone = Instant::now();
    second.kill();
    assert!(comes_again(&house, gone) < MOVED_WITHIN);
    // With both at hand half of the streams went to each: now all go to the one that is left.
    for _ in 0..10 {
        assert!(curl(&house).contains("came through a provider"));
    }
    assert!(opened(&house, &own) >= before + 11);
}

/// How long after `since` the page comes; a line that fails in between is tried again, as a user would.
fn comes_again(house: &House, since: Instant) -> Duration {
    wait_until("the page comes", || curl(house).contains("came through a provider"));
    since.elapsed()
}

/// What the printed line says; nothing if it fails.
fn curl(house: &House) -> String {
    let line = house.status()["lines"]["curl"].as_str().unwrap().to_owned();
    let output = house.shell(&format!("{line} -sS -m 10"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn status(house: &House, state: &std::path::Path) -> Value {
    let output =
        house.shell(&format!("{} provider status --json --state {}", house.program(), state.display()));
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// Streams that this provider has opened since its start.
fn opened(house: &House, state: &std::path::Path) -> u64 {
    status(house, state)["streams"]["taken"].as_u64().unwrap()
}

/// A provider that joined by the line that `up` prints.
struct Second {
    state: PathBuf,
    process: Child,
}

impl Second {
    fn join(house: &House) -> Self {
        let line = house.status()["lines"]["join"].as_str().unwrap().to_owned();
        let state = house.place().join(line.rsplit_once("--state ").unwrap().1.trim_matches('\''));
        // As it is printed, by whoever started the network.
        let process = Command::new("sh")
            .args(["-c", &line])
            .current_dir(house.place())
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let second = Self { state, process };
        let connected = || status(house, &second.state)["link"]["state"] == "connected";
        wait_until("the second provider is connected", connected);
        // Its owner lets it reach the page, which is on this machine.
        let line = house.status()["lines"]["curl"].as_str().unwrap().to_owned();
        let target = line.rsplit_once("//").unwrap().1.trim_end_matches('/');
        let (state, program) = (second.state.display(), house.program());
        let exception = format!("[egress]\nallow_exact = [\"{target}\"]\n");
        let told = house.shell(&format!(
            "printf '%s' '{exception}' > {state}/provider.toml && {program} provider reload --state {state}"
        ));
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        second
    }

    fn state(&self) -> PathBuf {
        self.state.clone()
    }

    /// As when its machine loses power: the shell that started it, and the provider.
    fn kill(&mut self) {
        let group = rustix::process::Pid::from_raw(self.process.id().cast_signed()).unwrap();
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.kill();
        }
    }
}

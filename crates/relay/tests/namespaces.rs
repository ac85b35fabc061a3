//! Two relays, their providers and openers, each in a network namespace of its own: partitions, also of one direction, and a wire
//! that loses packets. There is no database anywhere.
#![allow(missing_docs, unreachable_pub)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test that cannot go on has failed; its parts speak on their standard output, and it waits for them"
)]

#[path = "namespaces/parts.rs"]
mod parts;
#[path = "support.rs"]
mod support;

use parts::hex;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use trust::{ClientId, Identity, RelayId, RootKey, TokenKey};

/// What must happen happens within this time on a machine that is ten times slower.
const LIMIT: Duration = Duration::from_secs(60);

/// Not a test: what a process of the test below does.
#[test]
fn part() {
    parts::run();
}

#[test]
fn partitions_and_a_bad_wire_touch_no_healthy_stream_and_leave_each_provider_one_relay() {
    let missing = missing();
    if let Some(missing) = missing {
        return not_run(&missing);
    }
    let mut stage = Stage::new(6);
    let (a, b, c) = (stage.client(), stage.client(), stage.client());
    stage.relay("one", 1, 2);
    stage.relay("two", 2, 1);
    stage.provider("a", 3, &a, 100, 1);
    stage.provider("b", 4, &b, 100, 2);
    stage.provider("c", 3, &c, 100, 1);
    let all = [("a", &a), ("b", &b), ("c", &c)];
    stage.until("one", "relays=1 providers=2 elsewhere=1");
    stage.until("two", "relays=1 providers=1 elsewhere=2");
    stage.opener("left", 5, 1, &all);
    stage.opener("right", 6, 2, &all);
    for opener in ["left", "right"] {
        for (provider, _) in all {
            stage.until(opener, &format!("held {provider}"));
            stage.until(opener, &format!("opened {provider}"));
        }
    }

    // A partition. Each side goes on by itself; on the other one, the provider c starts anew.
    let parted = stage.mark();
    stage.wire("split 1,3,5");
    stage.until("one", "relays=0");
    stage.until("two", "relays=0");
    stage.provider("c-again", 4, &c, 200, 2);
    stage.until("two", "relays=0 providers=2");
    stage.until_times("left", "opened a here", 4, parted);
    stage.until_times("left", "opened c here", 4, parted);
    stage.until_times("right", "opened b here", 4, parted);
    stage.until_times("right", "opened c here", 2, parted);
    for (opener, provider) in [("left", "a"), ("left", "c"), ("right", "b")] {
        stage.never(opener, &format!("failed {provider}"), parted);
        stage.never(opener, &format!("broken {provider}"), parted);
    }
    let healed = stage.mark();
    stage.wire("heal");
    // The newest start has it, at one relay; the older one hears so and stays away.
    stage.until("c", "ended superseded");
    stage.until("one", "relays=1 providers=1 elsewhere=2");
    stage.until("two", "relays=1 providers=2 elsewhere=1");
    stage.until_times("left", "opened c there", 2, healed);
    stage.until_times("left", "opened b there", 2, healed);
    stage.until_times("right", "opened a there", 2, healed);

    // One direction alone.
    let halved = stage.mark();
    stage.wire("block 1 2");
    stage.until_since("one", "relays=0", halved);
    stage.until_since("two", "relays=0", halved);
    stage.until_times("left", "opened a here", 4, halved);
    stage.until_times("left", "opened b there", 4, halved);
    stage.until_times("right", "opened b here", 4, halved);
    stage.never("left", "failed", halved);
    let healed = stage.mark();
    stage.wire("heal");
    stage.until_since("one", "relays=1 providers=1 elsewhere=2", healed);
    stage.until_since("two", "relays=1 providers=2 elsewhere=1", healed);

    // An opener that cannot reach one of the relays is served through the other.
    let cut_off = stage.mark();
    stage.wire("block 5 2");
    stage.until_times("left", "opened b around", 3, cut_off);
    stage.until_times("left", "opened c around", 3, cut_off);
    stage.wire("heal");

    // Every hundredth millisecond, and every twentieth packet lost.
    let worse = stage.mark();
    stage.wire("worse 0.05 100");
    std::thread::sleep(Duration::from_secs(8));
    for opener in ["left", "right"] {
        for provider in ["a", "b"] {
            stage.until_times(opener, &format!("opened {provider}"), 2, worse);
        }
    }
    for relay in ["one", "two"] {
        stage.never(relay, "relays=0", worse);
    }
    // From the first moment to the last.
    for opener in ["left", "right"] {
        for provider in ["a", "b"] {
            stage.never(opener, &format!("broken {provider}"), 0);
        }
    }
}

/// What is needed and is not here.
fn missing() -> Option<String> {
    if !is_root() {
        return Some("needs root".to_owned());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun".to_owned());
    }
    for (program, arguments) in [("python3", ["--version"].as_slice()), ("ip", &["-V"])] {
        if !Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success()) {
            return Some(format!("{program} is missing"));
        }
    }
    let name = format!("hf{}-probe", std::process::id());
    let made = ip(&["netns", "add", &name]);
    let _ = ip(&["netns", "del", &name]);
    (!made).then(|| "network namespaces are not allowed".to_owned())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

fn ip(arguments: &[&str]) -> bool {
    Command::new("ip").args(arguments).output().is_ok_and(|output| output.status.success())
}

fn not_run(why: &str) {
    if let Some(list) = std::env::var_os("HOLDFAST_NOT_RUN") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(list).unwrap();
        writeln!(file, "relays in network namespaces: {why}").unwrap();
    }
    println!("not run: {why}");
}

/// Who a client is.
struct Someone {
    client: ClientId,
    identity: Identity,
}

/// The namespaces, the wire between them, and what runs in them. All of it ends with this.
struct Stage {
    namespaces: Vec<String>,
    wire: Option<(Child, ChildStdin, BufReader<std::process::ChildStdout>)>,
    parts: Vec<Child>,
    said: Arc<Mutex<Vec<(String, String)>>>,
    root: RootKey,
    tokens: TokenKey,
}

impl Drop for Stage {
    fn drop(&mut self) {
        for part in &mut self.parts {
            let _ = part.kill();
            let _ = part.wait();
        }
        if let Some((mut wire, input, _)) = self.wire.take() {
            drop(input);
            let _ = wire.wait();
        }
        for namespace in &self.namespaces {
            ip(&["netns", "del", namespace]);
        }
        if std::thread::panicking() {
            for (name, line) in &*self.said.lock().unwrap() {
                println!("{name}: {line}");
            }
        }
    }
}

impl Stage {
    fn new(count: usize) -> Self {
        let namespaces = (1..=count).map(|number| format!("hf{}-{number}", std::process::id())).collect();
        let mut stage = Self {
            namespaces,
            wire: None,
            parts: Vec::new(),
            said: Arc::default(),
            root: RootKey::generate().unwrap(),
            tokens: TokenKey::generate().unwrap(),
        };
        for namespace in &stage.namespaces {
            assert!(ip(&["netns", "add", namespace]));
        }
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/namespaces/wire.py");
        let mut wire = Command::new("python3")
            .arg(program)
            .args(&stage.namespaces)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (wire.stdin.take().unwrap(), BufReader::new(wire.stdout.take().unwrap()));
        stage.wire = Some((wire, input, output));
        stage.done();
        stage
    }

    fn done(&mut self) {
        let mut line = String::new();
        let (_, _, output) = self.wire.as_mut().unwrap();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "done\n", "the wire has ended");
    }

    fn wire(&mut self, command: &str) {
        let (_, input, _) = self.wire.as_mut().unwrap();
        writeln!(input, "{command}").unwrap();
        self.done();
    }

    #[expect(clippy::unused_self, reason = "clients are of a stage")]
    fn client(&self) -> Someone {
        Someone { client: ClientId::random(), identity: Identity::generate().unwrap() }
    }

    fn relay(&mut self, name: &str, at: usize, other: usize) {
        let relay = RelayId(uuid::Uuid::from_u128(at as u128)).to_string();
        self.start(name, at, &[("HOLDFAST_PART", "relay"), ("RELAY", &relay), ("PEER", &address(other))], at);
    }

    fn provider(&mut self, name: &str, at: usize, who: &Someone, epoch: u64, relay: usize) {
        let (secret, client) = (hex(who.identity.secret()), who.client.to_string());
        let epoch = epoch.to_string();
        let settings =
            [("HOLDFAST_PART", "provider"), ("SECRET", &secret), ("CLIENT", &client), ("EPOCH", &epoch)];
        self.start(name, at, &settings, relay);
    }

    fn opener(&mut self, name: &str, at: usize, relay: usize, providers: &[(&str, &Someone)]) {
        let who = self.client();
        let (secret, client) = (hex(who.identity.secret()), who.client.to_string());
        let one = |(name, who): &(&str, &Someone)| {
            format!("{name},{},{}", who.client, hex(&who.identity.public().seal_key()))
        };
        let providers = providers.iter().map(one).collect::<Vec<_>>().join(" ");
        let settings = [
            ("HOLDFAST_PART", "opener"),
            ("SECRET", secret.as_str()),
            ("CLIENT", &client),
            ("PROVIDERS", &providers),
        ];
        self.start(name, at, &settings, relay);
    }

    /// This test's own program, in a namespace.
    fn start(&mut self, name: &str, at: usize, settings: &[(&str, &str)], relay: usize) {
        let mut part = Command::new("ip")
            .args(["netns", "exec", &self.namespaces[at - 1]])
            .arg(std::env::current_exe().unwrap())
            .args(["part", "--exact", "--nocapture", "--test-threads=1"])
            .envs(settings.iter().copied())
            .env("ROOT", hex(self.root.seed()))
            .env("TOKENS", hex(self.tokens.seed()))
            .env("ADDRESS", address(relay))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(part.stdout.take().unwrap());
        let (said, name) = (Arc::clone(&self.said), name.to_owned());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The test harness says something before it, in the same line.
                if let Some((_, line)) = line.split_once("@ ") {
                    said.lock().unwrap().push((name.clone(), line.to_owned()));
                }
            }
        });
        self.parts.push(part);
    }

    /// All that was said so far.
    fn mark(&self) -> usize {
        self.said.lock().unwrap().len()
    }

    fn times(&self, name: &str, line: &str, since: usize) -> usize {
        let said = self.said.lock().unwrap();
        said[since..].iter().filter(|(who, what)| who == name && what.starts_with(line)).count()
    }

    fn until(&self, name: &str, line: &str) {
        self.until_times(name, line, 1, 0);
    }

    fn until_since(&self, name: &str, line: &str, since: usize) {
        self.until_times(name, line, 1, since);
    }

    fn until_times(&self, name: &str, line: &str, times: usize, since: usize) {
        let began = Instant::now();
        while self.times(name, line, since) < times {
            assert!(began.elapsed() < LIMIT, "{name} does not say '{line}' {times} times");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn never(&self, name: &str, line: &str, since: usize) {
        let said = self.said.lock().unwrap();
        let wrong: Vec<_> =
            said[since..].iter().filter(|(who, what)| who == name && what.starts_with(line)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}

fn address(relay: usize) -> String {
    format!("10.77.0.{relay}:443")
}

//! Network namespaces, and a wire between them that can be cut, also in one direction, and be made worse.
//!
//! The first is the hub: the drill itself, customers, the database. Nothing outside of them is touched: whoever works in one enters
//! it with a thread of its own (`setns(2)` moves a thread), and what that thread starts is in it as well.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Addresses are 10.77.0.1 and so on: the third byte and the name say that no other network is meant.
const MOST: u8 = 250;
const WIRE: &str = include_str!("namespaces/wire.py");
/// Where `ip netns` keeps them (ip-netns(8)).
const PLACE: &str = "/run/netns";

/// The wire answers each command at once; on a machine that is very busy, within this time.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// What was made, and goes with it.
#[derive(Debug)]
pub struct Namespaces {
    names: Vec<String>,
    wire: Mutex<Option<Wire>>,
}

#[derive(Debug)]
struct Wire {
    process: Child,
    input: ChildStdin,
    answers: mpsc::Receiver<String>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct Site {
    all: Arc<Namespaces>,
    number: u8,
}

impl Namespaces {
    /// What is needed here and is missing, if something is.
    #[must_use]
    pub fn missing() -> Option<String> {
        if !rustix::process::geteuid().is_root() {
            return Some("it needs root".to_owned());
        }
        if !Path::new("/dev/net/tun").exists() {
            return Some("there is no /dev/net/tun".to_owned());
        }
        for (program, arguments) in [("python3", ["--version"].as_slice()), ("ip", &["-V"])] {
            if !Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success()) {
                return Some(format!("{program} is missing"));
            }
        }
        let name = name(0);
        let made = ip(&["netns", "add", &name]);
        let _ = ip(&["netns", "del", &name]);
        made.err().map(|error| format!("network namespaces are not allowed: {error}"))
    }

    /// So many, and the wire.
    ///
    /// # Errors
    /// See [`Self::missing`].
    pub fn make(count: u8) -> anyhow::Result<Arc<Self>> {
        ensure!((1..=MOST).contains(&count), "from 1 to {MOST} namespaces");
        let mut made = Self { names: Vec::new(), wire: Mutex::default() };
        for number in 1..=count {
            let name = name(number);
            ip(&["netns", "add", &name])?;
            made.names.push(name);
        }
        let mut process = Command::new("python3")
            .args(["-c", WIRE])
            .args(&made.names)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("python3")?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(anyhow!("no pipes to the wire"));
        };
        let (said, answers) = mpsc::sync_channel(1);
        // It ends with the wire, which ends with its input.
        thread::Builder::new().name("wire".to_owned()).spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| said.send(line))
        })?;
        let wire = Wire { process, input, answers };
        let ready = wire.done();
        *made.wire() = Some(wire);
        ready?;
        Ok(Arc::new(made))
    }

    /// The one of that number, from 1.
    #[must_use]
    pub fn site(self: &Arc<Self>, number: u8) -> Site {
        Site { all: Arc::clone(self), number }
    }

    /// Nothing passes from one to the other, until [`Self::heal`].
    ///
    /// # Errors
    /// The wire has ended.
    pub fn block(&self, from: &Site, to: &Site) -> anyhow::Result<()> {
        self.tell(&format!("block {} {}", from.number, to.number))
    }

    /// So much of all packets is lost, and the others take `delay_ms`.
    ///
    /// # Errors
    /// The wire has ended.
    pub fn worse(&self, loss: f64, delay_ms: u32) -> anyhow::Result<()> {
        self.tell(&format!("worse {loss} {delay_ms}"))
    }

    /// Everything passes, at once.
    ///
    /// # Errors
    /// The wire has ended.
    pub fn heal(&self) -> anyhow::Result<()> {
        self.tell("heal")
    }

    fn tell(&self, command: &str) -> anyhow::Result<()> {
        let mut wire = self.wire();
        let wire = wire.as_mut().context("the wire has ended")?;
        writeln!(wire.input, "{command}")?;
        wire.done()
    }

    fn wire(&self) -> std::sync::MutexGuard<'_, Option<Wire>> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wire {
    fn done(&self) -> anyhow::Result<()> {
        let answer = self.answers.recv_timeout(ANSWER_LIMIT);
        ensure!(answer.as_deref() == Ok("done"), "the wire between the namespaces does not answer");
        Ok(())
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // It ends with its input, and its devices with it.
        if let Some(Wire { mut process, input, .. }) = self.wire().take() {
            drop(input);
            let _ = process.wait();
        }
        for name in &self.names {
            let _ = ip(&["netns", "del", name]);
        }
    }
}

impl Site {
    /// Its address.
    #[must_use]
    pub const fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, self.number)
    }

    /// Does something in it, on a thread of its own.
    ///
    /// # Errors
    /// The namespace is gone, or what `work` says.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
        let name = self.all.names.get(usize::from(self.number) - 1).context("there is no such namespace")?;
        let namespace =
            File::open(Path::new(PLACE).join(name)).with_context(|| format!("namespace {name}"))?;
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                    .context("cannot enter a network namespace")?;
                work()
            });
            inside.join().unwrap_or_else(|_| Err(anyhow!("what was done in a namespace has panicked")))
        })
    }
}

/// No two runs at once have the same.
fn name(number: u8) -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    format!("hfd{}-{made}-{number}", std::process::id())
}

fn ip(arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("ip").args(arguments).output().context("ip")?;
    ensure!(output.status.success(), "ip: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

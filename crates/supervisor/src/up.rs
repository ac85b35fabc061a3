//! One network from nothing to a `curl` line, and down again in order.

mod files;

use crate::children::{Kept, Kind, Programs};
use crate::cluster;
use crate::data::DataFolder;
use crate::error::UpError;
use crate::init::{InitOptions, Initialised, init};
use crate::preflight::{self, Severity};
use crate::provision::Owner;
use crate::renewal::keep_certificates;
use crate::state::{Board, ChildState, Lock, Phase, State};
use ::cluster::Binaries;
use clock::unix_ms;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use store::DirectPath;
use store::migrate::{Passwords, migrate};
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use trust::JoinLink;

const POSTGRES: Kind = Kind {
    name: "postgres",
    // Fast shutdown: sessions are ended, then a checkpoint.
    stop: Signal::INT,
    stop_limit: Duration::from_secs(30),
    start_limit: Duration::from_secs(60),
};
const POOLER: Kind = Kind {
    name: "pooler",
    stop: Signal::INT,
    stop_limit: Duration::from_secs(10),
    start_limit: Duration::from_secs(15),
};

const ROLES: Kind = Kind {
    name: "roles",
    stop: Signal::TERM,
    stop_limit: Duration::from_secs(45),
    start_limit: Duration::from_secs(60),
};

/// How a network is brought up.
#[derive(Clone, Debug, Default)]
pub struct UpOptions {
    /// Its data folder.
    pub data: PathBuf,
    /// How the network is made, if there is none yet.
    pub init: InitOptions,
    /// What the children run.
    pub programs: Programs,
    /// The account that is taken instead of root, if root started this.
    pub account: Option<String>,
}

/// What can be done with a network that is up: each a line to be copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// Asks the database through the pooler.
    pub psql: String,
    /// Fetches the demonstration page through the proxy and a provider.
    pub curl: String,
    /// Makes a code, and lets a provider join with it; the code goes from one to the other and is seen nowhere.
    pub join: String,
    /// Where others join.
    pub join_link: JoinLink,
}

impl Lines {
    fn new(owner: &Owner, programs: &Programs, account: Option<&str>, psql: String) -> Self {
        let settings = owner.settings();
        let (proxy, target) = (settings.public(settings.ports.proxy), settings.ports.demonstration);
        let login = shell_quoted(&owner.curl_login().display().to_string());
        let curl = format!("curl --proxy socks5h://{proxy} --config {login} http://127.0.0.1:{target}/");
        let Programs { typed, .. } = programs;
        let program = shell_quoted(typed);
        let folder = shell_quoted(&owner.data().path().display().to_string());
        let link = owner.link();
        // No provider runs as root: it runs as the network does, where that account may write.
        let state = account.map_or_else(|| "second".to_owned(), |_| format!("{folder}/second"));
        let join = format!(
            "{program} up code --data {folder} | {program} provider join {link} --state {state} && {program} provider up --state {state}"
        );
        let join = match account {
            Some(account) => format!(
                "setpriv --reuid {account} --regid {account} --clear-groups sh -c {}",
                shell_quoted(&join)
            ),
            None => join,
        };
        Self { psql, curl, join, join_link: link.clone() }
    }
}

/// A word of a shell's line.
fn shell_quoted(text: &str) -> String {
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte)) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Brings the network up, tells through `say` what it does, and keeps it up until it is told to stop (INT, TERM).
/// `ready` gets the lines as soon as they work.
///
/// # Errors
/// See [`UpError`]; whatever was started has been stopped by then.
pub async fn up(options: &UpOptions, say: &dyn Fn(&str), ready: impl FnOnce(&Lines)) -> Result<(), UpError> {
    let data = DataFolder::create(&options.data)?;
    let lock = Lock::take(&data)?;
    // At once: what stands there is of an earlier start.
    let board = board(&data, lock);
    let made = init(&data, &options.init)?;
    board.change(|state| state.network = Some(made.network));
    let findings = preflight::check(&data, &made.settings, unix_ms());
    if findings.iter().any(|finding| finding.severity == Severity::Error) {
        return Err(UpError::Preflight(findings));
    }
    findings.iter().for_each(|finding| say(&finding.to_string()));
    let network =
        Network { board, made, data, programs: options.programs.clone(), account: options.account.clone() };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| network.no_signals(error))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| network.no_signals(error))?;
    let mut started = Vec::new();
    let told = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    tokio::pin!(told);
    let result = tokio::select! {
        result = network.start(&mut started, say) => result,
        () = &mut told => Err(UpError::Interrupted),
    };
    if let Ok(lines) = &result {
        network.board.change(|state| {
            state.phase = Phase::Up;
            state.lines = Some(lines.clone());
        });
        ready(lines);
        tokio::select! {
            () = &mut told => {}
            () = keep_certificates(&network.data, say) => {}
        }
        say("stopping");
    }
    network.board.change(|state| state.phase = Phase::Stopping);
    while let Some(child) = started.pop() {
        child.stop().await;
    }
    result.map(|_| ())
}

struct Network {
    made: Initialised,
    data: DataFolder,
    programs: Programs,
    account: Option<String>,
    board: Board,
}

impl Network {
    /// Starts child after child, each when the one before is ready.
    async fn start(&self, started: &mut Vec<Kept>, say: &dyn Fn(&str)) -> Result<Lines, UpError> {
        let binaries = Binaries::find().map_err(UpError::Server)?;
        self.data.folder("log")?;
        say(&format!("PostgreSQL {} in {}", binaries.version(), self.data.file("postgres").display()));
        cluster::prepare(&self.data, &binaries, &self.made.secrets)?;
        let postgres = self.launch(started, POSTGRES);
        postgres.ready(&self.data, &self.board, async |pid| cluster::is_ready(&self.data, pid)).await?;
        self.migrate(say).await?;
        let psql = files::write_pooler(&self.made)?;
        let port = self.made.settings.ports.pooler;
        say(&format!("pooler on 127.0.0.1:{port}"));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let pooler = self.launch(started, POOLER);
        pooler.ready(&self.data, &self.board, async |_| answers(address).await).await?;
        files::write_roles(&self.made)?;
        let owner = Owner::open(&self.data)?;
        let ports = self.made.settings.ports;
        say(&format!(
            "api, relay, worker, proxy, one provider (ports {}, {}, {})",
            ports.api, ports.relay, ports.proxy
        ));
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, ports.demonstration));
        say(&format!(
            "warning: our own provider may reach {target}, the demonstration target, although the rules say no"
        ));
        let roles = self.launch(started, ROLES);
        roles.ready(&self.data, &self.board, async |_| owner.page_comes().await).await?;
        Ok(Lines::new(&owner, &self.programs, self.account.as_deref(), psql))
    }

    /// Brings the database to this program's schema, and gives its users their passwords.
    async fn migrate(&self, say: &dyn Fn(&str)) -> Result<(), UpError> {
        let secrets = &self.made.secrets;
        let passwords = Passwords {
            api: secrets.database_api.clone(),
            relay: secrets.database_relay.clone(),
            worker: secrets.database_worker.clone(),
        };
        let path = cluster::direct_path(&self.data);
        let path: DirectPath =
            path.parse().map_err(|error: store::PathError| self.data.damaged("postgres", error))?;
        for applied in migrate(&path, Some(&passwords)).await?.applied {
            say(&format!("database: {applied}"));
        }
        Ok(())
    }

    fn launch<'a>(&self, started: &'a mut Vec<Kept>, kind: Kind) -> &'a Kept {
        self.board.change(|state| {
            state.children.push(ChildState {
                name: kind.name.to_owned(),
                pid: None,
                since_ms: unix_ms(),
                restarts: 0,
                last_end: None,
            });
        });
        started.push(Kept::start(kind, &self.programs, &self.data, &self.board));
        #[expect(clippy::indexing_slicing, reason = "pushed just now")]
        &started[started.len() - 1]
    }

    fn no_signals(&self, source: std::io::Error) -> UpError {
        UpError::Disk { what: "listen for signals in", path: self.data.path().to_owned(), source }
    }
}

fn board(data: &DataFolder, lock: Lock) -> Board {
    let state = State {
        pid: std::process::id(),
        network: None,
        started_at_ms: unix_ms(),
        phase: Phase::Starting,
        children: Vec::new(),
        lines: None,
    };
    Board::new(data.clone(), lock, state)
}

async fn answers(address: SocketAddr) -> bool {
    TcpStream::connect(address).await.is_ok()
}

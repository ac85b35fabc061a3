//! What can be written on the command line.

use crate::conformance::Conformance;
use crate::db::DbCommand;
use crate::provider::ProviderCommand;
use crate::proxy::ProxyCommand;
use clap::{Args, Parser, Subcommand};
use drill::cost::Case;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  holdfast up                               a whole network on this machine; Ctrl-C stops it
  holdfast pooler pgbouncer.ini --check     say what is wrong with the file, bind nothing
  holdfast pooler pgbouncer.ini             run the pooler in the foreground, log to standard error
  kill -HUP PID                             read the file again
  kill -TERM PID                            stop when the clients are gone; a second TERM stops at once
  psql -p 6432 pgbouncer -c 'SHOW POOLS'    ask the running pooler (users: admin_users, stats_users)

Exit codes: 0 fine, 1 it failed, 64 the command line is wrong.";

const POOLER_EXAMPLES: &str = "\
The file is a pgbouncer.ini; a name that ends in .toml holds the same settings in TOML. The least that runs:

  [databases]
  * = host=127.0.0.1 port=5432

  [pgbouncer]
  listen_addr = 127.0.0.1
  listen_port = 6432
  pool_mode = transaction
  auth_type = scram-sha-256
  auth_file = userlist.txt

With `metrics_listen = 127.0.0.1:9127` it also serves http://127.0.0.1:9127/metrics and /healthz/live, /healthz/ready,
/healthz/database.";

const STALL_EXAMPLES: &str = "\
Starts a private PostgreSQL, holdfast and PgBouncer, puts clients with 5 s of patience on each, freezes the path to the
database, and measures how long each pooler takes to serve again. PgBouncer is looked for in --pgbouncer, then in the
environment variable PGBOUNCER, then in PATH; without one, holdfast runs alone. PostgreSQL's server programs must be
installed (Debian: apt-get install postgresql). It takes about a minute a variant.

Exit code 1 if holdfast stalled or could not be measured.

Examples:
  holdfast bench stall
  holdfast bench stall --all --json > stall.json
  holdfast bench stall --pgbouncer /opt/pgbouncer/bin/pgbouncer --clients 200";

const COST_EXAMPLES: &str = "\
Measures CPU time per transaction of holdfast and of PgBouncer in pairs of slices, in random order, on one private
PostgreSQL, and prints the median ratio with its 95 % bounds: below 1 holdfast is cheaper. Needs PgBouncer, PostgreSQL's
server programs and pgbench.

Examples:
  holdfast bench cost
  holdfast bench cost --case simple/64 --case extended/16 --blocks 30
  holdfast bench cost --json > cost.json";

const MAP_EXAMPLES: &str = "\
Each cell is a fresh PostgreSQL and pooler under an open-loop load (a share of what the database gives: a pool of 20, and a query that
sleeps); PostgreSQL stands still (SIGSTOP) for a while, and who is answered in time afterwards is counted. PgBouncer runs beside
holdfast if it is found.

Exit code 1 if holdfast did not come back in some cell.

Examples:
  holdfast bench map --picture map.svg              12 cells, about five minutes
  holdfast bench map --fine --json > map.json";

const UP_EXAMPLES: &str = "\
Everything stands in one folder: --data, else /var/lib/holdfast for root and ~/.local/share/holdfast for others. Nothing runs
as root: started by root, it becomes user postgres (else nobody). PostgreSQL's server programs must be installed
(Debian: apt-get install postgresql), or PG_BIN names their folder.

Examples:
  holdfast up                               start, print what can be done, stay; Ctrl-C stops it
  holdfast up --expose net.example.org      the same, for others to join under this name
  holdfast up status --json                 exit code 0 when it is up, 1 when it is not
  holdfast up stop
  holdfast up reset                         removes the network for good, after asking";

const PROVIDERS_EXAMPLES: &str = "\
Starts relays and providers as processes of their own on loopback addresses (127.16.0.1 and on), up to 15,000 connections each:
so a process needs 16,000 file descriptors. Measures each relay's memory and CPU with all providers connected and idle, then
kills the relays, starts them again, and takes the time until every provider is back.

Exit code 1 if they are not all back within 1.5 x count / rate, or could not be measured.

Examples:
  holdfast bench providers --count 5000
  holdfast bench providers --rate 800 --json > providers.json";

const DRILL_EXAMPLES: &str = "\
Each drill starts a whole network of its own on loopback (PostgreSQL, pooler, api, worker, relays, proxies, providers), puts
customers on it, does something to it, and scores what became of streams, providers, records and bytes. Nothing of yours is
touched. PostgreSQL's server programs must be installed (Debian: apt-get install postgresql).

The guard's drills (stalled-pools, slow-database, frozen-database, restart, overload-loop, dying-clients) need less: poolers, each
before a PostgreSQL of its own, under the same load. PgBouncer runs beside holdfast if it is found: in --pgbouncer, the
environment variable PGBOUNCER, or PATH. Only holdfast has to hold.

Exit codes: 0 all held, 1 something did not, 75 the machine was too busy to tell.

Examples:
  holdfast drill                                    list them
  holdfast drill frozen-database --pictures drills/ poolers side by side
  holdfast drill database-gone --pictures drills/   a minute without PostgreSQL, and a picture of it
  holdfast drill all --json > drills.json";

const API_EXAMPLES: &str = "\
`holdfast init` makes keys and certificates; any number of apis may run on the same database. The file:

  network = \"NETWORK\"                      # its name, as init prints it
  listen = \"0.0.0.0:7440\"
  certificate = \"api.crt\"
  certificate_key = \"api.key\"
  token_key = \"token.key\"
  root_key = \"root.key\"                    # only where revocations are signed
  state_folder = \"/var/lib/holdfast/api\"   # what it knows without the database
  [database]
  url = \"postgresql://holdfast_api:PASSWORD@127.0.0.1:6432/holdfast\"

SIGTERM stops it; requests under way are answered first.";

const RELAY_EXAMPLES: &str = "\
`holdfast init` makes keys and certificates. The least that runs:

  network = \"NETWORK\"                      # its name, as init prints it
  certificate = \"relay.crt\"
  certificate_key = \"relay.key\"
  [database]
  url = \"postgresql://holdfast_relay:PASSWORD@127.0.0.1:6432/holdfast\"
  [relay]
  listen = \"0.0.0.0:7540\"
  public_address = \"relay-1.example.org:7540\"
  state_folder = \"/var/lib/holdfast/relay\"

SIGTERM drains: clients are sent to other relays, streams that stand may end within drain_deadline_ms. A second one ends it.";

const WORKER_EXAMPLES: &str = "\
Any number of workers may run on the same database. The file:

  network = \"NETWORK\"
  [database]
  url = \"postgresql://holdfast_worker:PASSWORD@127.0.0.1:6432/holdfast\"

SIGTERM stops it; a turn that is under way is rolled back.";

const KEYS_EXAMPLES: &str = "\
Three kinds of keys, and none touches another: token keys sign tokens and contracts, the root key signs which token keys
are believed and which clients are revoked, and each role has a TLS certificate.

`rotate` publishes a new token key, waits until every relay and api that lives has seen it, lets it settle, and only then
lets it sign; the old one is believed until its last token has expired (8 days). No token is refused and no session ends. One
that was interrupted goes on with the same command; one that cannot go on is taken back by `withdraw`. On many machines, the file that
it makes in the api's `token_keys` has to be brought to the other apis; it waits for that too.

`revoke` puts a client out for good: every relay and api that reaches the database hears of it within 10 s. With --now it
waits until all that live hold the new list.

The network is that of --data (made by `holdfast up`; default as there), or that of an api's file (--config), whose way to the
database is used. The root key is read from --root-key, or where the api's file says.

Exit code 1 if it was not done, or not seen by everybody in time.

Examples:
  holdfast keys status
  holdfast keys rotate
  holdfast keys revoke 019a3c5e-0000-7000-8000-000000000001 --now
  holdfast keys renew-certificates
  holdfast keys rotate --config api.toml --root-key /media/stick/root.key
  holdfast keys renew-certificates --root-key root.key --role relay --name relay-1.example.org \\
      --certificate relay.crt --certificate-key relay.key";

/// A network of egress providers, and a PostgreSQL connection pooler that cannot stall.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole network on this machine.
    Up(UpArgs),
    /// Make a network: root key, certificates, ports. `up` does it by itself.
    Init(InitArgs),
    /// A child of `up`: not for people.
    #[command(hide = true)]
    UpChild(UpChildArgs),
    /// Run the pooler, or check its configuration.
    Pooler(PoolerArgs),
    /// Carry streams to the world for a network: the egress node.
    #[command(subcommand, arg_required_else_help = true)]
    Provider(ProviderCommand),
    /// Let customers in by SOCKS5 and HTTP, and open their streams through providers.
    #[command(subcommand, arg_required_else_help = true)]
    Proxy(ProxyCommand),
    /// Run an api: accounts, clients, grants, contracts, candidates.
    #[command(after_help = API_EXAMPLES)]
    Api(ServiceArgs),
    /// Run a relay: it holds the connections of providers and proxies, and moves their streams.
    #[command(after_help = RELAY_EXAMPLES)]
    Relay(ServiceArgs),
    /// Run a worker: it settles contracts and sweeps what is past its keep.
    #[command(after_help = WORKER_EXAMPLES)]
    Worker(ServiceArgs),
    /// Look at, rotate, revoke and renew the network's keys and certificates.
    #[command(after_help = KEYS_EXAMPLES, arg_required_else_help = true)]
    Keys(KeysArgs),
    /// Check another implementation of the link protocol.
    #[command(subcommand, arg_required_else_help = true)]
    Conformance(Conformance),
    /// Do something to a database behind poolers: a planned restart.
    #[command(subcommand, arg_required_else_help = true)]
    Db(DbCommand),
    /// Put a network through a fault under traffic, and say whether it held.
    #[command(after_help = DRILL_EXAMPLES)]
    Drill(DrillArgs),
    /// Measure the pooler beside PgBouncer on this machine.
    #[command(subcommand, arg_required_else_help = true)]
    Bench(Bench),
}

#[derive(Args, Debug)]
#[command(after_help = POOLER_EXAMPLES)]
pub(crate) struct PoolerArgs {
    /// The configuration: pgbouncer.ini, or the same settings in a .toml file
    pub(crate) file: PathBuf,
    /// Say what is wrong with the configuration and what is worth knowing about it, then stop; nothing is bound
    #[arg(long)]
    pub(crate) check: bool,
    /// Print findings about the configuration as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ServiceArgs {
    /// The configuration, in TOML
    pub(crate) file: PathBuf,
    /// Log lines as JSON
    #[arg(long)]
    pub(crate) json_log: bool,
}

#[derive(Args, Debug)]
#[command(after_help = UP_EXAMPLES)]
pub(crate) struct UpArgs {
    #[command(subcommand)]
    pub(crate) command: Option<Up>,
    /// The data folder
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) made: Made,
}

/// How a network is made.
#[derive(Args, Debug)]
pub(crate) struct Made {
    /// Let others join: the name or address under which they reach this machine
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) expose: Option<String>,
    /// Choose a new network's ports from here on
    #[arg(long, value_name = "PORT")]
    pub(crate) first_port: Option<u16>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Up {
    /// What runs, since when, and how to use it
    Status {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a code with which one client may join, within ten minutes: to be piped into `holdfast provider join`
    Code {
        /// What may join with it: provider, app or proxy
        #[arg(long, default_value = "provider")]
        role: trust::Role,
    },
    /// Stop it, and wait until it has stopped
    Stop,
    /// Remove the network for good: database, keys, name
    Reset {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
    /// The data folder of `holdfast up`
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,
    /// An api's file, of a network that was set up by hand
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "data")]
    pub(crate) config: Option<PathBuf>,
    /// The root key, if it stands elsewhere than the api's file says
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) root_key: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Which keys there are, who has seen them, and how long certificates hold
    Status,
    /// Let a new token key follow the present one
    Rotate {
        /// Seconds that the new key settles after the last relay or api has seen it
        #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=86_400))]
        settle_s: u64,
        /// Seconds that it may take beside that
        #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=86_400))]
        limit_s: u64,
    },
    /// Take back a new key that does not sign yet
    Withdraw,
    /// Put a client out for good
    Revoke {
        /// Its name, as `GET /v1/clients` and the logs have it
        client: trust::ClientId,
        /// Wait until every relay and api that lives holds the new list
        #[arg(long)]
        now: bool,
        /// Seconds that this may take
        #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3_600))]
        limit_s: u64,
    },
    /// Issue TLS certificates anew; roles that run take them within seconds, and no other key changes
    RenewCertificates(RenewArgs),
}

#[derive(Args, Debug)]
pub(crate) struct RenewArgs {
    /// By hand: the role that it is for (api, relay, proxy)
    #[arg(long, requires_all = ["names", "certificate", "certificate_key"])]
    pub(crate) role: Option<String>,
    /// By hand: a name or address under which it is dialled; several times for several
    #[arg(long = "name", value_name = "NAME", requires = "role")]
    pub(crate) names: Vec<String>,
    /// By hand: the file of the certificate
    #[arg(long, value_name = "FILE", requires = "role")]
    pub(crate) certificate: Option<PathBuf>,
    /// By hand: the file of its key
    #[arg(long, value_name = "FILE", requires = "role")]
    pub(crate) certificate_key: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct InitArgs {
    /// The data folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) made: Made,
}

#[derive(Args, Debug)]
pub(crate) struct UpChildArgs {
    pub(crate) parent: u32,
    pub(crate) name: String,
    pub(crate) data: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct DrillArgs {
    /// Which drills, or `all`; without any, they are listed
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// The long form: minutes instead of seconds
    #[arg(long)]
    pub(crate) long: bool,
    /// What is random follows from it
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) beside: BesideArgs,
    /// Holdfast's `overload_policy` where poolers run side by side, in place of its default
    #[arg(long, value_parser = ["off", "observe", "on"])]
    pub(crate) policy: Option<String>,
    /// Draw each as NAME.svg into this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) pictures: Option<PathBuf>,
    /// Print the whole reports as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// How long each pooler takes to serve again after the database froze
    #[command(after_help = STALL_EXAMPLES)]
    Stall(StallArgs),
    /// CPU time per transaction and memory per idle client, in pairs
    #[command(after_help = COST_EXAMPLES)]
    Cost(CostArgs),
    /// Load × length of a stall → who is answered afterwards: where a pooler does not come back
    #[command(after_help = MAP_EXAMPLES)]
    Map(MapArgs),
    /// Memory and CPU of a relay for each provider, and how fast all are back after it was killed
    #[command(after_help = PROVIDERS_EXAMPLES)]
    Providers(ProvidersArgs),
}

/// What holdfast is run beside.
#[derive(Args, Debug)]
pub(crate) struct BesideArgs {
    /// PgBouncer's program, where poolers run side by side
    #[arg(long, value_name = "PATH", conflicts_with = "alone")]
    pub(crate) pgbouncer: Option<PathBuf>,
    /// Run holdfast alone
    #[arg(long)]
    pub(crate) alone: bool,
}

#[derive(Args, Debug)]
pub(crate) struct StallArgs {
    #[command(flatten)]
    pub(crate) beside: BesideArgs,
    /// All 24 variants instead of the 6 standard ones
    #[arg(long)]
    pub(crate) all: bool,
    /// Clients of each pooler
    #[arg(long, default_value_t = 400, value_parser = at_least_one)]
    pub(crate) clients: usize,
    /// Seconds after the fault
    #[arg(long, value_name = "SECONDS", default_value_t = 40, value_parser = clap::value_parser!(u64).range(5..=3600))]
    pub(crate) after: u64,
    /// Print the whole report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct MapArgs {
    #[command(flatten)]
    pub(crate) beside: BesideArgs,
    /// Holdfast's `overload_policy`, in place of its default
    #[arg(long, value_parser = ["off", "observe", "on"])]
    pub(crate) policy: Option<String>,
    /// 64 cells instead of 12: about half an hour
    #[arg(long)]
    pub(crate) fine: bool,
    /// Draw it into this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
    /// What is random follows from it
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print the whole report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CostArgs {
    /// PgBouncer's program
    #[arg(long, value_name = "PATH")]
    pub(crate) pgbouncer: Option<PathBuf>,
    /// MODE/CLIENTS, then perhaps /tls, then perhaps /reconnect; MODE simple, extended or prepared; several times for several cases
    #[arg(long = "case", value_name = "CASE")]
    pub(crate) cases: Vec<Case>,
    /// Pairs of slices of each case
    #[arg(long, default_value_t = 15, value_parser = at_least_one)]
    pub(crate) blocks: usize,
    /// Seconds of a slice
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) slice: u32,
    /// Idle clients whose memory is measured; 0: none
    #[arg(long, default_value_t = 2000)]
    pub(crate) idle_clients: usize,
    /// Decides the order of slices and the resampling
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print the whole report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ProvidersArgs {
    /// Providers; with more than 15,000 there are several relays
    #[arg(long, default_value_t = 75_000, value_parser = at_least_one)]
    pub(crate) count: usize,
    /// Handshakes a second of all relays together
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rate: u32,
    /// Seconds over which the CPU while idle is taken
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) idle: u64,
    /// Print the whole report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Be one of its processes: standard input says which
    #[arg(long, hide = true)]
    pub(crate) part: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(format!("not a whole number: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn counts_and_cases_are_checked_before_anything_starts() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' '));
        assert!(parse("holdfast bench stall --clients 0").is_err());
        assert!(parse("holdfast bench cost --case simple/16 --case extended/4/reconnect").is_ok());
        assert!(parse("holdfast bench cost --case fast/16").is_err());
        assert!(parse("holdfast bench stall --alone --pgbouncer x").is_err());
        assert!(parse("holdfast pooler").is_err());
    }
}

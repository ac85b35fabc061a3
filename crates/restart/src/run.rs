//! The steps, and what becomes of them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tokio::process::Command;
use tokio::time::{Instant, sleep};
use tokio_postgres::Config;

use crate::check::{self, Change};
use crate::console::{self, Console, Paused};
use crate::files::Settings;
use crate::process::{self, Programs};
use crate::server::{self, Facts};
use crate::socket::Postmaster;
use crate::{Error, MOST_POOLERS, Options};

/// Logins by which a server that is up is judged.
const LOGINS: usize = 5;
/// The superuser of the server's own socket, if no other is named.
const SUPERUSER: &str = "postgres";

/// What would be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The server's settings file.
    pub file: String,
    /// What would change in it.
    pub changes: Vec<Change>,
    /// The poolers that would be paused.
    pub poolers: Vec<String>,
    /// How the server would be restarted.
    pub command: String,
}

/// What is done now, for whoever watches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// The settings are good.
    Checked,
    /// A pooler's pools have come to rest.
    Paused {
        /// Which.
        pooler: String,
    },
    /// A pooler has no PAUSE: its callers will wait for a server in line.
    NotPaused {
        /// Which.
        pooler: String,
    },
    /// The server is told to restart.
    Restarting,
    /// It answers.
    Up {
        /// After so long, ms.
        after_ms: u64,
    },
    /// It does not: it gets its former settings.
    RollingBack {
        /// Why.
        why: String,
    },
    /// A pooler goes on.
    Resumed {
        /// Which.
        pooler: String,
    },
    /// A pooler could not be told to go on: it has to be told by hand.
    NotResumed {
        /// Which.
        pooler: String,
        /// Why.
        why: String,
    },
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The server runs with the new settings.
    Restarted,
    /// The server runs with its former settings again.
    RolledBack,
    /// The server is not up.
    Down,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Done {
    /// How it ended.
    pub outcome: Outcome,
    /// What has changed, or would have.
    pub changes: Vec<Change>,
    /// Changes that the server does not run with although it has restarted: something else overrides them.
    pub not_in_force: Vec<Change>,
    /// From the first PAUSE to the last RESUME, ms.
    pub paused_ms: u64,
    /// From the restart to the first answer, ms; none if there was none.
    pub down_ms: Option<u64>,
    /// The slowest of a few new connections afterwards, ms.
    pub slowest_login_ms: Option<u64>,
    /// Poolers that could not be told to go on.
    pub not_resumed: Vec<String>,
}

/// A restart that has been checked and can be done.
#[derive(Debug)]
pub struct Restart {
    options: Options,
    server: Config,
    before: Facts,
    programs: Programs,
    log: Option<std::path::PathBuf>,
    settings: Settings,
    values: BTreeMap<String, String>,
    changes: Vec<Change>,
}

impl Restart {
    /// Looks at the server, checks the settings, and reaches every pooler. Nothing is changed.
    ///
    /// # Errors
    /// It cannot be done so.
    pub async fn prepare(options: Options) -> Result<Self, Error> {
        if options.poolers.len() > MOST_POOLERS {
            return Err(Error::TooMany);
        }
        let postmaster = Postmaster::read(&options.data)?;
        let server = options.server.clone().unwrap_or_else(|| own_socket(&postmaster));
        let before = server::facts(&server).await?;
        let log = postmaster.log.clone();
        let programs = Programs::of(&options.data, postmaster.programs)?;
        let settings = Settings::read(
            &before.config_file,
            options.new_settings.as_deref(),
            options.former_settings.as_deref(),
        )?;
        let values = check::values(&programs, &options.data, &settings).await?;
        let changes = check::changes(&values, &before.settings);
        for pooler in &options.poolers {
            Console::connect(pooler).await?;
        }
        Ok(Self { options, server, before, programs, log, settings, values, changes })
    }

    /// What would be done.
    #[must_use]
    pub fn plan(&self) -> Plan {
        Plan {
            file: self.settings.file.display().to_string(),
            changes: self.changes.clone(),
            poolers: self.options.poolers.iter().map(console::place).collect(),
            command: self.options.command.clone().unwrap_or_else(|| "pg_ctl restart -m fast".to_owned()),
        }
    }

    /// Does it; `tell` hears of each step. It is bounded by the limits, and not stopped in the middle.
    ///
    /// # Errors
    /// A pool did not come to rest, or the settings could not be put in place: the server was not touched, the pools go on.
    pub async fn run(self, mut tell: impl FnMut(Step)) -> Result<Done, Error> {
        tell(Step::Checked);
        let began = Instant::now();
        let ready = match self.pause(&mut tell).await {
            Ok(()) => self.settings.install().inspect_err(|_| {
                // Half of it may stand there. If this fails too, the first failure says why.
                let _ = self.settings.take_back();
            }),
            Err(error) => Err(error),
        };
        if let Err(error) = ready {
            self.resume(&mut tell).await;
            return Err(error);
        }
        let (outcome, down) = self.restart(&mut tell).await;
        let not_resumed = self.resume(&mut tell).await;
        let paused_ms = ms(began.elapsed());
        let mut not_in_force = Vec::new();
        if outcome == Outcome::Restarted {
            if let Ok(now) = server::facts(&self.server).await {
                let left = check::changes(&self.values, &now.settings);
                not_in_force = left.into_iter().filter(|left| self.is_wanted(&left.name)).collect();
            }
            // The next restart may have to come back to what runs now.
            self.settings.keep()?;
        }
        let login = match outcome {
            Outcome::Down => None,
            _ => server::slowest_login(&self.server, LOGINS).await,
        };
        Ok(Done {
            outcome,
            changes: self.changes,
            not_in_force,
            paused_ms,
            down_ms: down.map(ms),
            slowest_login_ms: login.map(ms),
            not_resumed,
        })
    }

    fn is_wanted(&self, name: &str) -> bool {
        self.changes.iter().any(|change| change.name == name)
    }

    async fn pause(&self, tell: &mut impl FnMut(Step)) -> Result<(), Error> {
        for pooler in &self.options.poolers {
            let console = Console::connect(pooler).await?;
            let paused = console.pause(self.options.pause_limit).await?;
            let pooler = console.name.clone();
            tell(match paused {
                Paused::Yes => Step::Paused { pooler },
                Paused::Unknown => Step::NotPaused { pooler },
            });
        }
        Ok(())
    }

    /// One pooler after the other, so that their callers do not all come at once. Those that could not be told.
    async fn resume(&self, tell: &mut impl FnMut(Step)) -> Vec<String> {
        let mut left = Vec::new();
        for (number, config) in self.options.poolers.iter().enumerate() {
            if number > 0 {
                sleep(self.options.resume_every).await;
            }
            let pooler = console::place(config);
            match console::resume(config).await {
                Ok(()) => tell(Step::Resumed { pooler }),
                // A pooler that was not paused says so.
                Err(Error::Pooler { why, .. }) if says_not_paused(&why) => {}
                Err(error) => {
                    tell(Step::NotResumed { pooler: pooler.clone(), why: error.to_string() });
                    left.push(pooler);
                }
            }
        }
        left
    }

    /// Restarts the server, and goes back if it is not up in time.
    async fn restart(&self, tell: &mut impl FnMut(Step)) -> (Outcome, Option<Duration>) {
        tell(Step::Restarting);
        let why = match self.try_once("restart").await {
            Ok(after) => {
                tell(Step::Up { after_ms: ms(after) });
                return (Outcome::Restarted, Some(after));
            }
            Err(why) => why,
        };
        tell(Step::RollingBack { why });
        if let Err(error) = self.settings.restore() {
            tell(Step::RollingBack { why: error.to_string() });
            return (Outcome::Down, None);
        }
        match self.try_once("restart").await {
            Ok(after) => {
                tell(Step::Up { after_ms: ms(after) });
                (Outcome::RolledBack, Some(after))
            }
            Err(why) => {
                tell(Step::RollingBack { why });
                (Outcome::Down, None)
            }
        }
    }

    /// Gives the command, and waits until the server answers.
    async fn try_once(&self, verb: &str) -> Result<Duration, String> {
        let limit = self.options.up_limit;
        let began = Instant::now();
        let command = match &self.options.command {
            Some(line) => shell(line),
            None => self.pg_ctl(verb),
        };
        let said = match process::run(command, limit, false).await {
            Ok(Some(ended)) if ended.status.success() => String::new(),
            Ok(Some(ended)) => format!("the command ended with {}; ", ended.status),
            Ok(None) => format!("the command took more than {limit:?}; "),
            Err(error) => format!("{error}; "),
        };
        // A command that failed may have left a server that comes up all the same, but need not be waited for so long.
        let left =
            if said.is_empty() { limit.saturating_sub(began.elapsed()) } else { Duration::from_secs(1) };
        match server::up_again(&self.server, &self.before.started_at, left.max(Duration::from_secs(1))).await
        {
            Some(_) => Ok(began.elapsed()),
            None => Err(format!("{said}the server did not answer within {:.1?}", began.elapsed())),
        }
    }

    fn pg_ctl(&self, verb: &str) -> Command {
        let mut command = self.programs.command("pg_ctl");
        command.arg("-D").arg(&self.options.data).args(["-m", "fast", "-w", "-s"]);
        command.arg("-t").arg(self.options.up_limit.as_secs().max(1).to_string());
        if let Some(log) = &self.log {
            command.arg("-l").arg(log);
        }
        command.arg(verb);
        command
    }
}

fn shell(line: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line);
    command
}

fn own_socket(postmaster: &Postmaster) -> Config {
    let mut config = Config::new();
    config.host_path(&postmaster.socket_folder).port(postmaster.port).user(SUPERUSER).dbname("postgres");
    config
}

/// PgBouncer's words for a RESUME that had nothing to resume; and a console that knows no such command.
fn says_not_paused(why: &str) -> bool {
    why.contains("not paused") || why.contains("not suspended") || why.contains("not built")
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn more_poolers_than_the_bound_are_refused_before_anything_is_looked_at() {
        let mut options = Options::new("/nonexistent".into());
        options.poolers = vec![Config::new(); MOST_POOLERS];
        assert!(matches!(Restart::prepare(options.clone()).await, Err(Error::NotRunning { .. })));
        options.poolers.push(Config::new());
        assert!(matches!(Restart::prepare(options).await, Err(Error::TooMany)));
    }

    #[test]
    fn a_console_that_had_nothing_to_resume_is_no_failure() {
        assert!(says_not_paused("pooler is not paused/suspended"));
        assert!(says_not_paused("RESUME is not built yet"));
        assert!(!says_not_paused("admin access needed"));
    }
}

//! The consoles of poolers: PAUSE and RESUME, as PgBouncer has them.

use std::fmt::Write as _;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

use crate::Error;

/// A console answers at once, or not at all.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A pooler's console.
pub(crate) struct Console {
    pub(crate) name: String,
    client: Client,
}

/// How a pooler took PAUSE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Paused {
    /// Its pools have come to rest.
    Yes,
    /// It has no such command; its callers wait in line for a server instead.
    Unknown,
}

impl Console {
    pub(crate) async fn connect(config: &Config) -> Result<Self, Error> {
        let mut config = config.clone();
        if config.get_dbname().is_none() {
            config.dbname("pgbouncer");
        }
        let name = place(&config);
        let (client, connection) = match timeout(ANSWER_LIMIT, config.connect(NoTls)).await {
            Ok(Ok(both)) => both,
            Ok(Err(error)) => return Err(Error::Pooler { pooler: name, why: words(&error) }),
            Err(_) => {
                return Err(Error::Pooler {
                    pooler: name,
                    why: format!("no answer within {ANSWER_LIMIT:?}"),
                });
            }
        };
        // It ends with the client.
        tokio::spawn(connection);
        Ok(Self { name, client })
    }

    pub(crate) async fn pause(&self, limit: Duration) -> Result<Paused, Error> {
        match timeout(limit, self.client.simple_query("PAUSE")).await {
            Ok(Ok(_)) => Ok(Paused::Yes),
            Ok(Err(error)) if error.code() == Some(&SqlState::FEATURE_NOT_SUPPORTED) => Ok(Paused::Unknown),
            Ok(Err(error)) => Err(Error::Pooler { pooler: self.name.clone(), why: words(&error) }),
            Err(_) => Err(Error::Busy { pooler: self.name.clone(), limit }),
        }
    }
}

/// RESUME on a connection of its own: that of a PAUSE that goes on is occupied by it.
pub(crate) async fn resume(config: &Config) -> Result<(), Error> {
    let console = Console::connect(config).await?;
    match timeout(ANSWER_LIMIT, console.client.simple_query("RESUME")).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(Error::Pooler { pooler: console.name.clone(), why: words(&error) }),
        Err(_) => Err(Error::Pooler {
            pooler: console.name.clone(),
            why: format!("no answer within {ANSWER_LIMIT:?}"),
        }),
    }
}

/// The server's own words, where there are some.
pub(crate) fn words(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        // Writing to a String cannot fail.
        let _ = write!(text, ": {inner}");
        cause = inner.source();
    }
    text
}

/// Where it is, without its secrets.
pub(crate) fn place(config: &Config) -> String {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match config.get_hosts().first() {
        Some(Host::Tcp(host)) => format!("{host}:{port}"),
        Some(Host::Unix(folder)) => format!("{}:{port}", folder.display()),
        None => format!("localhost:{port}"),
    }
}

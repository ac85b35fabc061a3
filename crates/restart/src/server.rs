//! The server itself: what it runs with, and whether it is up.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use crate::Error;
use crate::check::Live;
use crate::console::words;

/// A login and a small question.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Between two looks at a server that is not up.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What a running server says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) config_file: PathBuf,
    /// `pg_postmaster_start_time()`, as text: another one after a restart.
    pub(crate) started_at: String,
    pub(crate) settings: BTreeMap<String, Live>,
}

pub(crate) async fn facts(config: &Config) -> Result<Facts, Error> {
    let look = async {
        let client = connect(config).await?;
        let about = rows(
            &client,
            "select current_setting('config_file'), extract(epoch from pg_postmaster_start_time())::text",
        )
        .await?;
        let settings = rows(&client, "select name, setting, source from pg_settings").await?;
        Ok::<_, String>((about, settings))
    };
    let (about, settings) = match timeout(ANSWER_LIMIT, look).await {
        Ok(Ok(both)) => both,
        Ok(Err(why)) => return Err(Error::Server(why)),
        Err(_) => return Err(Error::Server(format!("no answer within {ANSWER_LIMIT:?}"))),
    };
    let mut about = about.into_iter().flatten();
    let (config_file, started_at) = (about.next().unwrap_or_default(), about.next().unwrap_or_default());
    let live = |row: Vec<String>| {
        let [name, value, source] = <[String; 3]>::try_from(row).ok()?;
        Some((name, Live { value, is_fixed: source == "command line" }))
    };
    Ok(Facts {
        config_file: PathBuf::from(config_file),
        started_at,
        settings: settings.into_iter().filter_map(live).collect(),
    })
}

/// Waits until another server than the one that was started at `before` answers; how long that took.
pub(crate) async fn up_again(config: &Config, before: &str, limit: Duration) -> Option<Duration> {
    let began = Instant::now();
    let end = began + limit;
    loop {
        if let Ok(Ok(facts)) = timeout_at(end, facts(config)).await
            && facts.started_at != before
        {
            return Some(began.elapsed());
        }
        if Instant::now() + LOOK_EVERY >= end {
            return None;
        }
        sleep(LOOK_EVERY).await;
    }
}

/// The longest of a few logins, one after the other: what a new connection costs.
pub(crate) async fn slowest_login(config: &Config, count: usize) -> Option<Duration> {
    let mut slowest = Duration::ZERO;
    for _ in 0..count {
        let began = Instant::now();
        let client = timeout(ANSWER_LIMIT, connect(config)).await.ok()?.ok()?;
        timeout(ANSWER_LIMIT, rows(&client, "select 1")).await.ok()?.ok()?;
        slowest = slowest.max(began.elapsed());
    }
    Some(slowest)
}

async fn connect(config: &Config) -> Result<Client, String> {
    let (client, connection) = config.connect(NoTls).await.map_err(|error| words(&error))?;
    // It ends with the client.
    tokio::spawn(connection);
    Ok(client)
}

async fn rows(client: &Client, sql: &str) -> Result<Vec<Vec<String>>, String> {
    let messages = client.simple_query(sql).await.map_err(|error| words(&error))?;
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|column| row.get(column).unwrap_or_default().to_owned()).collect())
        }
        _ => None,
    };
    Ok(messages.into_iter().filter_map(row).collect())
}

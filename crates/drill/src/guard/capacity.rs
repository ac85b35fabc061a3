//! What the database gives without a pooler: so many connections, each asking one query after another.

use std::time::Duration;

use anyhow::ensure;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::postgres::{DATABASE, USER};
use crate::wire::{self, Address, ConnectOptions, Connection};

/// Answers a second that `connections` get from `server`, over `span`.
///
/// # Errors
/// The server refuses, or answers nothing.
pub(super) fn measure(
    server: &Address,
    connections: u32,
    query: &str,
    span: Duration,
) -> anyhow::Result<f64> {
    let options = ConnectOptions::new(server.clone(), USER, DATABASE);
    let answers = wire::block_on(async {
        let mut logins = JoinSet::new();
        for _ in 0..connections {
            let options = options.clone();
            logins.spawn(async move { Connection::connect(&options).await });
        }
        let mut clients = JoinSet::new();
        let mut ready = Vec::new();
        while let Some(login) = logins.join_next().await {
            ready.push(login??);
        }
        let end = Instant::now() + span;
        for mut connection in ready {
            let query = query.to_owned();
            clients.spawn(async move {
                let mut answers = 0_u32;
                while Instant::now() < end {
                    connection.query(&query).await?.into_result()?;
                    answers += u32::from(Instant::now() < end);
                }
                connection.terminate().await?;
                Ok::<u32, wire::Error>(answers)
            });
        }
        let mut all = 0;
        while let Some(answers) = clients.join_next().await {
            all += answers??;
        }
        anyhow::Ok(all)
    })??;
    ensure!(answers > 0, "the database answered nothing within {span:?}");
    Ok(f64::from(answers) / span.as_secs_f64())
}

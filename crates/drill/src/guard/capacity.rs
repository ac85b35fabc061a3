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
    let all_per_s = wire::block_on(async {
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
        let began = Instant::now();
        for mut connection in ready {
            let query = query.to_owned();
            clients.spawn(async move {
                let mut answers = 0_u32;
                while began.elapsed() < span {
                    connection.query(&query).await?.into_result()?;
                    answers += 1;
                }
                // To its last answer: half a query at the end would count as none.
                let rate_per_s = f64::from(answers) / began.elapsed().as_secs_f64();
                connection.terminate().await?;
                Ok::<f64, wire::Error>(rate_per_s)
            });
        }
        let mut all_per_s = 0.0;
        while let Some(rate_per_s) = clients.join_next().await {
            all_per_s += rate_per_s??;
        }
        anyhow::Ok(all_per_s)
    })??;
    ensure!(all_per_s > 0.0, "the database answered nothing within {span:?}");
    Ok(all_per_s)
}

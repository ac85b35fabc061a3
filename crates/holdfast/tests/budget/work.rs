//! Transactions to be measured.

use drill::wire::{ConnectOptions, Connection};
use tokio::task::JoinSet;

use crate::support::connect;

/// Clients that have logged in and asked once.
pub(crate) struct Clients {
    all: Vec<Connection>,
}

impl Clients {
    pub(crate) async fn start(options: &ConnectOptions, count: usize) -> Self {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(connect(options).await);
        }
        let mut clients = Self { all };
        // All at once, so that every server of the pool is open.
        clients.run(20).await;
        clients
    }

    /// Each client makes that many transactions of one simple query, all clients at the same time.
    pub(crate) async fn run(&mut self, each: usize) {
        let mut tasks = JoinSet::new();
        for mut client in std::mem::take(&mut self.all) {
            tasks.spawn(async move {
                for _ in 0..each {
                    let reply = client.query("select 1").await.unwrap();
                    assert_eq!(reply.value(), Some("1"));
                }
                client
            });
        }
        while let Some(client) = tasks.join_next().await {
            self.all.push(client.unwrap());
        }
    }

    pub(crate) async fn leave(self) {
        for client in self.all {
            client.terminate().await.unwrap();
        }
    }
}

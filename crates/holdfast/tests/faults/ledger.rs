//! Whether everything that was opened is closed again.

use std::time::Duration;

use drill::process::descriptor_count;
use tokio::time::{Instant, sleep};

use crate::support::{House, number};

/// How long what was opened may take to be closed again.
const LIMIT: Duration = Duration::from_secs(20);

/// Columns of SHOW POOLS that are 0 once nobody is there and nothing is under way.
const AT_REST: [&str; 10] = [
    "cl_active",
    "cl_waiting",
    "cl_active_cancel_req",
    "sv_active",
    "sv_active_cancel",
    "sv_being_canceled",
    "sv_used",
    "sv_tested",
    "sv_login",
    "sv_closing",
];

/// What the pooler had open before anybody came.
pub(crate) struct Ledger {
    descriptors: usize,
}

impl Ledger {
    /// Taken before the first client.
    pub(crate) async fn open(house: &House) -> Self {
        // The probe of the start has to be gone, and what a first session of the console brings along has to be there.
        house.show("VERSION").await;
        sleep(Duration::from_millis(300)).await;
        Self { descriptors: descriptor_count(house.pooler.pid()).unwrap() }
    }

    /// With all clients gone: no client and no half-open server is left in SHOW POOLS, the database has exactly the
    /// sessions that the pooler knows of, and the pooler has the descriptors of its start and one for each of those.
    pub(crate) async fn assert_balanced(&self, house: &House) {
        let end = Instant::now() + LIMIT;
        loop {
            let left = self.left_behind(house).await;
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "left behind: {}\n{}", left.join("; "), tail(&house.pooler.log()));
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn left_behind(&self, house: &House) -> Vec<String> {
        let mut left = Vec::new();
        let mut servers = 0;
        for row in house.show("POOLS").await.iter().filter(|row| row["database"] != "pgbouncer") {
            servers += number(row, "sv_idle");
            for column in AT_REST.into_iter().filter(|column| number(row, column) != 0) {
                left.push(format!("{column} of {}/{} is {}", row["database"], row["user"], row[column]));
            }
        }
        match house.postgres.backend_count() {
            Ok(sessions) if sessions == servers => {}
            sessions => left.push(format!("{servers} servers in SHOW POOLS, at the database {sessions:?}")),
        }
        let expected = self.descriptors + servers;
        let mut found = 0;
        // The session that asked the console takes a moment to be gone.
        for _ in 0..20 {
            found = descriptor_count(house.pooler.pid()).unwrap();
            if found == expected {
                return left;
            }
            sleep(Duration::from_millis(10)).await;
        }
        left.push(format!("{found} descriptors instead of {expected}"));
        left
    }
}

/// The end of a log, for a failure.
pub(crate) fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

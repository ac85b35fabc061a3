//! Limits of a pool, and which of them contradict each other.

/// No pool has more connections.
const MOST_CONNECTIONS: usize = 1_000;
/// No line is longer.
const LONGEST_LINE: usize = 100_000;

/// Limits of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// The most connections at once.
    pub connections: usize,
    /// The most callers that wait for one; the next is refused at once.
    pub most_waiting: usize,
    /// How long a caller waits for a connection, ms.
    pub acquire_ms: u64,
    /// How long its work may take then, ms.
    pub work_ms: u64,
    /// How long work that nobody waits for any more may go on before it is cancelled, ms. Most of it ends by itself sooner, and a
    /// cancel costs a connection of its own.
    pub cancel_after_ms: u64,
    /// How long the server may take to answer to a cancel before the connection is closed, ms.
    pub settle_ms: u64,
    /// The longest time that the pooler in between lets a client wait for a server (`query_wait_timeout`), ms. It has
    /// to be shorter than what a caller waits here: else callers give up on waits that the pooler goes on with.
    pub pooler_wait_ms: Option<u64>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            connections: 8,
            most_waiting: 256,
            acquire_ms: 2_000,
            work_ms: 5_000,
            cancel_after_ms: 100,
            settle_ms: 5_000,
            pooler_wait_ms: None,
        }
    }
}

/// Options that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPool {
    /// A number is outside its bounds.
    #[error("{name} is {value}, and has to be from {least} to {most}")]
    OutOfBounds {
        /// Which option.
        name: &'static str,
        /// What it is.
        value: u64,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// The pooler would wait longer than its caller.
    #[error(
        "the pooler lets a client wait {pooler_ms} ms for a server, but {name} is {limit_ms} ms: \
        a caller would give up first, and the pooler would go on with work that nobody waits for"
    )]
    PoolerWaitsLonger {
        /// The pooler's limit.
        pooler_ms: u64,
        /// Which of ours.
        name: &'static str,
        /// What it is.
        limit_ms: u64,
    },
}

impl PoolOptions {
    pub(super) fn check(&self) -> Result<(), InvalidPool> {
        let day_ms = 86_400_000;
        bounded("connections", self.connections as u64, 1, MOST_CONNECTIONS as u64)?;
        bounded("most_waiting", self.most_waiting as u64, 0, LONGEST_LINE as u64)?;
        bounded("acquire_ms", self.acquire_ms, 1, day_ms)?;
        bounded("work_ms", self.work_ms, 1, day_ms)?;
        bounded("cancel_after_ms", self.cancel_after_ms, 0, day_ms)?;
        bounded("settle_ms", self.settle_ms, 1, day_ms)?;
        let Some(pooler_ms) = self.pooler_wait_ms else { return Ok(()) };
        for (name, limit_ms) in [("acquire_ms", self.acquire_ms), ("work_ms", self.work_ms)] {
            // 0 is the pooler's word for no limit.
            if pooler_ms == 0 || pooler_ms >= limit_ms {
                return Err(InvalidPool::PoolerWaitsLonger { pooler_ms, name, limit_ms });
            }
        }
        Ok(())
    }
}

fn bounded(name: &'static str, value: u64, least: u64, most: u64) -> Result<(), InvalidPool> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(InvalidPool::OutOfBounds { name, value, least, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pooler_that_waits_as_long_as_its_caller_is_refused() {
        let options =
            |pooler_wait_ms| PoolOptions { pooler_wait_ms: Some(pooler_wait_ms), ..PoolOptions::default() };
        assert_eq!(options(1_999).check(), Ok(()));
        for wrong in [2_000, 10_000, 0] {
            let error = options(wrong).check().unwrap_err();
            assert!(matches!(error, InvalidPool::PoolerWaitsLonger { name: "acquire_ms", .. }), "{error}");
        }
    }

    #[test]
    fn limits_are_bounded() {
        for options in [
            PoolOptions { connections: 0, ..PoolOptions::default() },
            PoolOptions { connections: MOST_CONNECTIONS + 1, ..PoolOptions::default() },
            PoolOptions { most_waiting: LONGEST_LINE + 1, ..PoolOptions::default() },
            PoolOptions { acquire_ms: 0, ..PoolOptions::default() },
            PoolOptions { work_ms: 0, ..PoolOptions::default() },
        ] {
            assert!(matches!(options.check(), Err(InvalidPool::OutOfBounds { .. })), "{options:?}");
        }
    }
}

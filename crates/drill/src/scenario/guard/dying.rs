//! Callers that leave: while they wait, at BEGIN, in the middle of a statement.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::{LONG_SHARE, Plan, good_share};
use crate::clock;
use crate::guard::{GuardStage, POOL_SIZE, Side};
use crate::postgres::{DATABASE, USER};
use crate::wire::{self, Connection, frame};

/// How long the pool is held while callers wait and leave.
const HOLD: Duration = Duration::from_millis(1_500);
/// The one that stays gets its answer so soon after a server is free.
const HAND_OFF_LIMIT: Duration = Duration::from_millis(1_000);
/// Statements of callers that have left are gone from the server within so long.
const GONE_LIMIT: Duration = Duration::from_secs(5);
/// Nobody would wait for it.
const ENDLESS: &str = "select pg_sleep(600)";
const DYING: f64 = 0.2;
const LOAD: f64 = 0.7;
const STEP_LIMIT: Duration = Duration::from_secs(60);

pub(in crate::scenario) fn clients(stage: &mut GuardStage<'_>) -> anyhow::Result<()> {
    let (waiters, callers) = (stage.of(200, 500), stage.of(200, 1_000));
    stage.begin(&Plan { dying_share: DYING, ..Plan::steady(LOAD) })?;
    stage.event("one in five callers leaves without a word before its answer");
    let span = stage.of(Duration::from_secs(4), Duration::from_secs(60));
    let warm_up = Duration::from_secs(1);
    stage.pass(warm_up);
    let before = stage.each(|side| side.backends())?;
    stage.pass(span);
    let now = stage.each(|side| side.backends())?;
    stage.end_load()?;
    let until = stage.end();
    let share = good_share(stage).min(LONG_SHARE);
    stage.answered("those who stay are answered in time", &(warm_up..until), share);
    lost(stage, "server connections lost meanwhile", &before, &now);

    stage.event(format!("{waiters} callers wait for a server, and all but one leave"));
    let waits = stage.each(|side| within(last_waiter(side, waiters)))?;
    stage.score_each(
        &format!("of {waiters} waiters, the one that stayed was served after a server was free"),
        format!("within {} ms", HAND_OFF_LIMIT.as_millis()),
        &waits,
        |wait| match wait {
            Some(wait) => (format!("{} ms", wait.as_millis()), *wait <= HAND_OFF_LIMIT),
            None => ("never".to_owned(), false),
        },
    );

    stage.event(format!("{callers} callers leave at BEGIN"));
    let before = stage.each(|side| side.backends())?;
    stage.each(|side| within(leave_at_begin(side, callers)))?;
    let now = stage.each(|side| side.backends())?;
    lost(stage, &format!("server connections lost by {callers} callers that left at BEGIN"), &before, &now);

    stage.event("callers leave in the middle of a statement of a transaction");
    let before = stage.each(|side| side.backends())?;
    let gone = stage.each(|side| {
        within(leave_in_statement(side))?;
        let began = clock::now();
        let nobody = || {
            side.server
                .backends()
                .is_ok_and(|all| all.iter().all(|one| one.query != ENDLESS || one.state == "idle"))
        };
        Ok(clock::wait_for(GONE_LIMIT, nobody).then(|| began.elapsed()))
    })?;
    let now = stage.each(|side| side.backends())?;
    stage.score_each(
        "their statements are cancelled",
        format!("within {} s", GONE_LIMIT.as_secs()),
        &gone,
        |gone| (super::seconds(*gone), gone.is_some()),
    );
    lost(stage, "server connections lost by them", &before, &now);
    Ok(())
}

fn lost(
    stage: &mut GuardStage<'_>,
    what: &str,
    before: &[std::collections::BTreeSet<u32>],
    now: &[std::collections::BTreeSet<u32>],
) {
    let lost: Vec<usize> =
        before.iter().zip(now).map(|(before, now)| before.difference(now).count()).collect();
    stage.score_each(what, 0, &lost, |lost| (*lost, *lost == 0));
}

/// A pooler that has stalled must not stall the drill.
fn within<T: Send>(step: impl Future<Output = anyhow::Result<T>> + Send) -> anyhow::Result<T> {
    wire::block_on(async { timeout(STEP_LIMIT, step).await })??
}

async fn connect(side: &Side) -> Result<Connection, wire::Error> {
    Connection::connect(&side.pooler.connect_options(USER, DATABASE)).await
}

/// Row 2: the pool is held, others wait, all but one leave. How long after a server is free the one has its answer.
async fn last_waiter(side: &Side, waiters: usize) -> anyhow::Result<Option<Duration>> {
    let hold = frame::query(&format!("select pg_sleep({})", HOLD.as_secs_f64()));
    let (mut waiting, mut holders) = (Vec::new(), Vec::new());
    for _ in 0..waiters {
        waiting.push(connect(side).await?);
    }
    for _ in 0..POOL_SIZE {
        holders.push(connect(side).await?);
    }
    for holder in &mut holders {
        holder.send(&hold).await?;
    }
    let held = Instant::now();
    for waiter in &mut waiting {
        waiter.send(&frame::query("select 1")).await?;
    }
    let last = waiting.pop();
    for (number, waiter) in waiting.into_iter().enumerate() {
        // As libpq leaves, and as a killed process does.
        if number % 2 == 0 { waiter.terminate().await? } else { drop(waiter) }
    }
    let Some(mut last) = last else { return Ok(None) };
    let answer = timeout(HOLD + Duration::from_secs(10), last.read_reply()).await;
    let served = held.elapsed().saturating_sub(HOLD);
    for mut holder in holders {
        let _ = timeout(Duration::from_secs(5), holder.read_reply()).await;
    }
    Ok(matches!(answer, Ok(Ok(_))).then_some(served))
}

/// Row 12.
async fn leave_at_begin(side: &Side, callers: usize) -> anyhow::Result<()> {
    for number in 0..callers {
        let mut caller = connect(side).await?;
        caller.send(&frame::query("begin")).await?;
        match number % 3 {
            0 => drop(caller),
            1 => caller.terminate().await?,
            _ => {
                // This one has its transaction.
                let _ = timeout(Duration::from_secs(2), caller.read_reply()).await;
            }
        }
    }
    sleep(Duration::from_millis(500)).await;
    Ok(())
}

/// Row 13.
async fn leave_in_statement(side: &Side) -> anyhow::Result<()> {
    let mut callers = Vec::new();
    for _ in 0..POOL_SIZE {
        let mut caller = connect(side).await?;
        timeout(Duration::from_secs(10), caller.query("begin")).await??;
        caller.send(&frame::query(ENDLESS)).await?;
        callers.push(caller);
    }
    sleep(Duration::from_millis(300)).await;
    Ok(())
}

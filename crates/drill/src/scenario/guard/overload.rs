//! Slow, timeout, retry, more load: the loop that feeds itself.

use std::time::Duration;

use super::{FULL, Plan, good_share};
use crate::guard::figures::{goodput_per_s, quantile};
use crate::guard::{GuardStage, percent};

const TWICE: f64 = 2.0;

pub(in crate::scenario) fn load_loop(stage: &mut GuardStage<'_>) -> anyhow::Result<()> {
    let from = stage.spans().warm_up;
    let until = from + stage.of(Duration::from_secs(4), Duration::from_secs(300));
    let phases = vec![(Duration::ZERO, FULL), (from, TWICE), (until, FULL)];
    stage.begin(&Plan { phases, retries: 1, dying_share: 0.0 })?;
    stage.pass(from);
    stage.event("twice the load that the database carries; whoever fails tries once more");
    stage.pass(until.saturating_sub(stage.now()));
    stage.event("the usual load");
    stage.pass(stage.of(Duration::from_secs(8), Duration::from_secs(40)));
    stage.end_load()?;

    let capacity = stage.capacity_per_s();
    let share = good_share(stage);
    stage.answered("answered in time before", &(Duration::ZERO..from), share);
    // The line forms in the first second.
    let overloaded = from + Duration::from_secs(1)..until;
    let least = stage.of(0.7, 0.95) * capacity;
    stage.score(
        "answers in time at twice the load, a second",
        format!("at least {least:.0} of {capacity:.0}"),
        |records| {
            let seen = goodput_per_s(records, &overloaded);
            (format!("{seen:.0} ({})", percent(seen / capacity)), seen >= least)
        },
    );
    let patience = stage.spans().patience;
    stage.score("99 of 100 answers at twice the load took", format!("at most {patience:.1?}"), |records| {
        let seen = quantile(records, &overloaded, 0.99);
        (format!("{seen:.2?}"), seen <= patience)
    });
    let limit = stage.of(Duration::from_secs(6), Duration::from_secs(10));
    stage.normal_within("all is as before, at the usual load", until, limit, share);
    Ok(())
}

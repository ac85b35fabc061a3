//! The lists of providers: nobody builds new ones.

use std::time::Duration;

use trust::api::ProviderFigures;

use super::stage::Stage;
use crate::network::NetworkOptions;

/// How long nobody builds lists.
const SHORT: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_secs(600);
/// Lists of a small network are built each second; a list is said to be stale within this time after the last.
const STALE_LIMIT: Duration = Duration::from_secs(20);
/// And fresh again after the builder's return.
const FRESH_LIMIT: Duration = Duration::from_secs(10);
/// A stream that has worked shows in the figures within this time.
const VERIFIED_LIMIT: Duration = Duration::from_secs(30);
/// A stream in which nobody is asked any more who has gone: the first customers find out.
const FOUND_OUT: u64 = 6;

pub(super) fn size(options: &mut NetworkOptions) {
    options.proxies = 1;
    options.providers = 3;
}

pub(super) fn rebuild_stopped(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let verified = stage.until(VERIFIED_LIMIT, |stage| figures(stage).is_some_and(|seen| seen.verified > 0));
    stage.came_within("a provider is known to work, besides being listed", verified, VERIFIED_LIMIT);
    let before = figures(stage);
    let listed = |seen: Option<&ProviderFigures>| seen.map_or(0, |seen| seen.listed);
    stage.check("providers that are listed", listed(before.as_ref()), 3, listed(before.as_ref()) == 3);

    stage.event("the worker, which builds the lists, is killed");
    let since_s = stage.traffic().elapsed_s();
    stage.network.worker.kill();
    let stale = stage.until(STALE_LIMIT, |stage| figures(stage).is_some_and(|seen| seen.stale));
    stage.came_within("the list is said to be stale", stale, STALE_LIMIT);
    stage.pass(stage.span(SHORT, LONG) / 2);
    let now = figures(stage);
    stage.check("providers that are listed then", listed(now.as_ref()), 3, listed(now.as_ref()) == 3);
    let refused = refused_since(stage, since_s);
    stage.at_most("streams that did not come about", refused, 0);
    let broken = stage.traffic().sums().broken;

    stage.event("a provider is killed: it stays in the list");
    let since_s = stage.traffic().elapsed_s();
    stage.network.providers[0].kill();
    stage.pass(stage.span(SHORT, LONG) / 2);
    let refused = refused_since(stage, since_s);
    stage.at_most("streams that did not come about: the first find out that it has gone", refused, FOUND_OUT);
    let seconds = stage.traffic().seconds();
    let silent = seconds.iter().rev().take(10).filter(|second| second.opened == 0).count();
    stage.at_most("of the last ten seconds, those without a new stream", silent as u64, 0);
    let lost = stage.traffic().sums().broken - broken;
    stage.check("streams that broke", lost, "at most 8: all that are held", lost <= 8);

    stage.event("a worker builds lists again");
    stage.network.worker.start()?;
    let fresh =
        stage.until(FRESH_LIMIT, |stage| figures(stage).is_some_and(|seen| !seen.stale && seen.listed == 2));
    stage.came_within("the list is fresh, without the one that has gone", fresh, FRESH_LIMIT);
    Ok(())
}

fn figures(stage: &Stage<'_>) -> Option<ProviderFigures> {
    stage.network.customer().providers().ok().flatten()
}

fn refused_since(stage: &Stage<'_>, since_s: f64) -> u64 {
    stage.traffic().refused().iter().filter(|refused| refused.at_s >= since_s && !refused.is_held).count()
        as u64
}

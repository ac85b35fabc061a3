//! The database is slow, gone, or behind a pooler that is: a network under traffic must not notice more than it has to.

use std::time::Duration;

use super::stage::Stage;
use crate::network::{NetworkOptions, Service};
use crate::postgres::StopMode;
use crate::process::Signal;
use crate::relay::Direction;

/// Providers for weight.
const GUESTS: usize = 200;
/// How long the database is gone.
const SHORT: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(600);
/// Everything is as before within this time after its return.
const NORMAL_LIMIT: Duration = Duration::from_secs(10);
/// A provider that was cut off is back, by itself, within this time (a connection lost starts with a wait of at most 1 s).
const BACK_LIMIT: Duration = Duration::from_secs(30);
/// Streams of a provider that was killed end within this time, seconds.
const CUT_LIMIT_S: f64 = 3.0;
/// Roles that started without a database run so for a while.
const WITHOUT: Duration = Duration::from_secs(10);
/// Reports are written each second, and settled in batches.
const REPORT_LIMIT: Duration = Duration::from_secs(30);
/// What the seal adds to each message, and what a stream costs beside: in the relay's count, and so on the bill.
const SEAL_BYTES: u64 = 16;
/// See [`SEAL_BYTES`]; the ends of both directions.
const STREAM_BYTES: u64 = 64;
/// A message of a customer may be cut in so many frames by sockets.
const FRAMES: u64 = 3;

/// Two relays, two proxies, four providers.
pub(super) fn size(options: &mut NetworkOptions) {
    options.relays = 1;
    options.proxies = 2;
    options.providers = 3;
}

pub(super) fn gone(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    fault(
        stage,
        "PostgreSQL is stopped",
        |stage| stage.network.postgres.stop(StopMode::Fast),
        |stage| stage.network.postgres.start_again(),
    )
}

pub(super) fn pooler_gone(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    fault(
        stage,
        "the pooler is killed",
        |stage| {
            stage.network.pooler.kill();
            Ok(())
        },
        |stage| stage.network.pooler.start(),
    )
}

pub(super) fn pooler_stalled(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    fault(
        stage,
        "the way from the pooler to PostgreSQL freezes",
        |stage| {
            stage.network.paths.server.freeze();
            Ok(())
        },
        |stage| {
            stage.network.paths.server.thaw();
            Ok(())
        },
    )
}

/// What holds before a fault, and must hold after it.
pub(super) struct Before {
    connections: Vec<u64>,
    dials: u64,
    records: i64,
    streams_broken: u64,
}

impl Before {
    pub(super) fn look(stage: &mut Stage<'_>) -> anyhow::Result<Self> {
        let connections = connections(stage);
        let mut dials = 0;
        for guests in &mut stage.guests {
            dials += guests.dials()?;
        }
        let records = records(stage)?;
        Ok(Self { connections, dials, records, streams_broken: stage.traffic().sums().broken })
    }

    /// No stream, no link and no record was lost since.
    pub(super) fn compare(&self, stage: &mut Stage<'_>) -> anyhow::Result<()> {
        let broken = stage.traffic().sums().broken - self.streams_broken;
        stage.at_most("streams that broke", broken, 0);
        let now = connections(stage);
        let again: u64 = now.iter().zip(&self.connections).map(|(now, before)| now.abs_diff(*before)).sum();
        stage.at_most("times that a provider had to connect again", again, 0);
        let mut dials = 0;
        for guests in &mut stage.guests {
            dials += guests.dials()?;
        }
        stage.at_most("links that ended, of the others", dials.saturating_sub(self.dials), 0);
        Ok(())
    }
}

fn connections(stage: &Stage<'_>) -> Vec<u64> {
    (0..stage.network.providers.len()).map(|number| stage.network.provider_connections(number)).collect()
}

/// Rows of relays, and of clients that are connected.
fn records(stage: &Stage<'_>) -> anyhow::Result<i64> {
    let sql = "select (select count(*) from relay_beat) + (select count(*) from connection where disconnected_at is null)";
    Ok(stage.network.number(sql)?.unwrap_or(0))
}

fn fault(
    stage: &mut Stage<'_>,
    name: &str,
    begin: fn(&mut Stage<'_>) -> anyhow::Result<()>,
    end: fn(&mut Stage<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let guests = stage.network.guests(0, GUESTS)?;
    stage.guests.push(guests);
    let before = Before::look(stage)?;
    let span = stage.span(SHORT, LONG);

    stage.event(name);
    let at_s = stage.traffic().elapsed_s();
    begin(stage)?;
    stage.pass(span / 2);
    before.compare(stage)?;

    stage.event("a provider is killed, and starts again");
    let cut_s = stage.traffic().elapsed_s();
    cut_off(stage, 0)?;
    let back = stage.until(BACK_LIMIT, |stage| carries(stage, 0));
    stage.came_within("it came back on its token, and carries streams", back, BACK_LIMIT);
    let connected = connections(stage);
    stage.pass(span / 2);
    refusals(stage, at_s);
    let broken = stage.traffic().broken();
    let broken = broken
        .iter()
        .filter(|broken| broken.at_s > at_s && !(cut_s..cut_s + CUT_LIMIT_S).contains(&broken.at_s));
    stage.at_most(
        "streams that broke, but for those of the provider that was killed",
        broken.count() as u64,
        0,
    );

    stage.event("it is back");
    end(stage)?;
    let normal = stage.until(NORMAL_LIMIT, |stage| {
        let seconds = stage.traffic().seconds();
        let held = stage.traffic().sums().held;
        let last = seconds.iter().rev().take(2);
        held == HELD && last.clone().all(|second| second.refused == 0 && second.opened > 0) && signs_in(stage)
    });
    stage.came_within("streams, new streams and sign-ins are as before", normal, NORMAL_LIMIT);
    let now = connections(stage);
    let again = now.iter().zip(&connected).map(|(now, before)| now.abs_diff(*before)).sum();
    stage.at_most("times that a provider had to connect again at its return", again, 0);
    stage.pass(Duration::from_secs(5));
    let now = records(stage)?;
    let lost = u64::try_from(before.records - now).unwrap_or(0);
    stage.check(
        "records of relays and connections",
        now,
        format!("no fewer than {}", before.records),
        lost == 0,
    );
    bill(stage)
}

/// Streams held by the customers of two proxies.
pub(super) const HELD: u64 = 16;

fn signs_in(stage: &Stage<'_>) -> bool {
    stage.network.customer().sign_in().is_ok()
}

fn is_connected(stage: &Stage<'_>, number: usize) -> bool {
    stage.network.provider_status(number)["link"]["state"] == "connected"
}

/// It has taken streams since its start.
fn carries(stage: &Stage<'_>, number: usize) -> bool {
    stage.network.provider_status(number)["streams"]["taken"].as_u64().is_some_and(|taken| taken > 0)
}

/// Its link and its streams end without a word, and it comes back with a new epoch.
fn cut_off(stage: &mut Stage<'_>, number: usize) -> anyhow::Result<()> {
    let provider = &mut stage.network.providers[number];
    provider.kill();
    provider.start()
}

/// A refusal names its cause, and when to come back.
fn refusals(stage: &mut Stage<'_>, since_s: f64) {
    let refused = stage.traffic().refused();
    let asked = refused.iter().filter(|refused| refused.at_s >= since_s && !refused.is_held);
    let (all, dumb) = asked.fold((0_u64, 0_u64), |(all, dumb), refused| {
        let named = !refused.cause.starts_with("io:") && refused.cause != "no answer in time";
        (all + 1, dumb + u64::from(!named || refused.retry_after_s.is_none()))
    });
    stage.check(
        "refusals without a cause and a time to come back",
        format!("{dumb} of {all}"),
        "0",
        dumb == 0,
    );
}

/// What customers moved is what relays have reported, once.
fn bill(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    stage.event("customers leave; their bytes are counted");
    stage.stop_traffic()?;
    let sums = stage.traffic().sums();
    let least = sums.bytes;
    let most = least + sums.rounds * 2 * FRAMES * SEAL_BYTES + sums.streams * STREAM_BYTES;
    let mut reported = 0;
    let settled = stage.until(REPORT_LIMIT, |stage| {
        reported = stage.network.number("select sum(bytes)::bigint from usage").ok().flatten().unwrap_or(0);
        u64::try_from(reported).is_ok_and(|reported| reported >= least)
    });
    let reported = u64::try_from(reported).unwrap_or(0);
    stage.check(
        "bytes reported by relays",
        reported,
        format!("between {least} (moved by customers) and {most} (with the seal)"),
        settled.is_some() && reported <= most,
    );
    Ok(())
}

pub(super) fn slow(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let guests = stage.network.guests(0, GUESTS)?;
    stage.guests.push(guests);
    let before = Before::look(stage)?;
    let span = stage.span(SHORT, LONG);
    let opened = |stage: &Stage<'_>| {
        let counts = stage.network.paths.server.counts();
        (counts.opened, counts.bytes_up)
    };

    // The load of a healthy database, over a span of the same length as the fault's.
    let quiet = span / 3;
    let begin = opened(stage);
    stage.pass(quiet);
    let end = opened(stage);
    let healthy = (end.1 - begin.1) as f64 / quiet.as_secs_f64();

    stage.event("every answer of PostgreSQL takes 2 to 10 s");
    let at_s = stage.traffic().elapsed_s();
    let mut random = fastrand::Rng::with_seed(stage.seed());
    let begin = opened(stage);
    let mut left = span;
    while !left.is_zero() {
        let delay = Duration::from_millis(random.u64(2_000..=10_000));
        stage.network.paths.server.delay_bytes(Direction::Down, delay);
        let step = left.min(Duration::from_secs(5));
        stage.pass(step);
        left -= step;
    }
    let end = opened(stage);
    let slow = (end.1 - begin.1) as f64 / span.as_secs_f64();
    before.compare(stage)?;
    refusals(stage, at_s);
    stage.check(
        "bytes a second to the database",
        format!("{slow:.0}"),
        format!("at most {:.0} (1.2 times those of a healthy one)", healthy * 1.2),
        slow <= healthy * 1.2,
    );
    // A wait that is given up is cancelled, and a cancel request is a connection; so is a login that took too long.
    stage.at_most("new connections to PostgreSQL, a second", (end.0 - begin.0) / span.as_secs(), 3);

    stage.event("it is as fast as before");
    stage.network.paths.server.delay_bytes(Direction::Down, Duration::ZERO);
    let normal = stage.until(NORMAL_LIMIT + Duration::from_secs(10), |stage| {
        let seconds = stage.traffic().seconds();
        let mut last = seconds.iter().rev().take(2);
        last.all(|second| second.refused == 0 && second.opened > 0) && signs_in(stage)
    });
    // The last delayed answer may still take its 10 s.
    stage.came_within(
        "new streams and sign-ins are as before",
        normal,
        NORMAL_LIMIT + Duration::from_secs(10),
    );
    bill(stage)
}

pub(super) fn start_without(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    // What is to be known without the database is read every few seconds.
    stage.pass(Duration::from_secs(20));
    stage.event("PostgreSQL is stopped");
    stage.network.postgres.stop(StopMode::Fast)?;
    stage.pass(Duration::from_secs(2));
    stage.event("every role is killed, and starts again");
    let network = &mut stage.network;
    let providers = network.providers.iter_mut();
    let roles: Vec<&mut Service> = providers
        .chain(&mut network.proxies)
        .chain(&mut network.relays)
        .chain([&mut network.worker, &mut network.api])
        .collect();
    let mut failed = Vec::new();
    let mut roles = roles;
    for role in &mut roles {
        role.kill();
    }
    for role in roles.into_iter().rev() {
        if let Err(error) = role.start() {
            failed.push(format!("{}: {error:#}", role.name()));
        }
    }
    stage.check("roles that did not start", format!("{failed:?}"), "none", failed.is_empty());
    let began = stage.traffic().elapsed_s();
    let count = stage.network.providers.len();
    let back = stage.until(BACK_LIMIT, |stage| (0..count).all(|number| is_connected(stage, number)));
    stage.came_within("all providers are connected", back, BACK_LIMIT);
    // What was seen before the kill counts for nothing.
    let killed_at = stage.traffic().seconds().len();
    let flows = stage.until(BACK_LIMIT, |stage| {
        let seconds = stage.traffic().seconds();
        let since = seconds.get(killed_at..).unwrap_or_default();
        stage.traffic().sums().held == HELD
            && since.len() >= 2
            && since.iter().rev().take(2).all(|second| second.opened > 0)
    });
    stage.came_within("streams flow without a database", flows, BACK_LIMIT);
    stage.pass(WITHOUT);
    let broken = stage.traffic().sums().broken;
    stage.pass(WITHOUT);
    let again = stage.traffic().sums().broken - broken;
    stage.at_most("streams that broke since, in 10 s", again, 0);
    refusals(stage, began);
    stage.event("PostgreSQL is back");
    stage.network.postgres.start_again()?;
    let normal = stage.until(NORMAL_LIMIT, |stage| signs_in(stage));
    stage.came_within("people sign in", normal, NORMAL_LIMIT);
    let runs = all_run(stage);
    stage.check("roles that have ended", format!("{runs:?}"), "none", runs.is_empty());
    Ok(())
}

fn all_run(stage: &mut Stage<'_>) -> Vec<String> {
    let network = &mut stage.network;
    let roles = network.providers.iter_mut().chain(&mut network.proxies).chain(&mut network.relays);
    roles
        .chain([&mut network.worker, &mut network.api, &mut network.pooler])
        .filter_map(|role| (!role.is_running()).then(|| role.name().to_owned()))
        .collect()
}

pub(super) fn reconnect_storm(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let many = if stage.span(SHORT, LONG) == LONG { 10_000 } else { 1_000 };
    let guests = stage.network.guests(0, many)?;
    stage.guests.push(guests);
    stage.event(format!("the relay of {many} providers is killed, and starts again"));
    stage.network.relays[0].signal(Signal::KILL)?;
    stage.network.relays[0].kill();
    stage.network.relays[0].start()?;
    let limit = Duration::from_secs(90);
    let back = stage.until(limit, |stage| {
        stage.guests.iter_mut().all(|guests| guests.connected().is_ok_and(|connected| connected == many))
    });
    stage.came_within("all are back", back, limit);
    let mut dials = 0;
    for guests in &mut stage.guests {
        dials += guests.dials()?;
    }
    stage.at_most("dials of all, the first ones included", dials, 8 * many as u64);
    let flows = stage.until(BACK_LIMIT, |stage| {
        let seconds = stage.traffic().seconds();
        stage.traffic().sums().held == HELD && seconds.iter().rev().take(2).all(|second| second.opened > 0)
    });
    stage.came_within("streams flow again", flows, BACK_LIMIT);
    Ok(())
}

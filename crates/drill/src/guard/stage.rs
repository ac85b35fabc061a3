//! What a drill of the guard has in hand: poolers under the same load, and the score of each.

use std::fmt::Display;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use serde::Serialize;

use super::figures::{self, Bucket, Record, Span};
use super::load::{LoadOptions, Phase};
use super::side::{PoolerKind, Side, SideOptions};
use crate::clock;
use crate::peer::{Holdfast, PoolerProgram};
use crate::postgres::USER;
use crate::process;
use crate::scenario::{Check, DrillOptions, Event, Report, View};
use crate::stall::Bye;
use crate::wire::Address;

/// A database that gives less than this share of what it was built to give is on a machine that is too busy.
const LEAST_CAPACITY_SHARE: f64 = 0.75;

/// Lines of a log that a report quotes.
const QUOTED_LOG_LINES: usize = 20;

/// Short form and long form of a drill.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spans {
    /// The query sleeps so long, ms.
    pub query_ms: u64,
    /// Callers hang up after so long.
    pub patience: Duration,
    /// The load runs so long before anything is done.
    pub warm_up: Duration,
    /// The capacity is measured over so long.
    pub calibration: Duration,
    /// A bucket of the picture.
    pub bucket: Duration,
    /// The generator may be so late in one of 100 requests. What it is late counts against the pooler.
    pub most_late: Duration,
}

impl Spans {
    /// Those of a form. The short one asks half as often, so that several run at once on a small machine.
    #[must_use]
    pub const fn of(long: bool) -> Self {
        if long {
            Self {
                query_ms: 50,
                patience: Duration::from_secs(2),
                warm_up: Duration::from_secs(10),
                calibration: Duration::from_secs(3),
                bucket: Duration::from_secs(1),
                most_late: Duration::from_millis(50),
            }
        } else {
            Self {
                query_ms: 100,
                patience: Duration::from_secs(1),
                warm_up: Duration::from_secs(2),
                calibration: Duration::from_secs(1),
                bucket: Duration::from_millis(250),
                most_late: Duration::from_millis(300),
            }
        }
    }
}

/// A load in shares of the capacity.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// From when on, and how much.
    pub(crate) phases: Vec<(Duration, f64)>,
    /// How often what failed is tried again.
    pub(crate) retries: u32,
    /// Share of callers that leave without a word while they wait.
    pub(crate) dying_share: f64,
}

impl Plan {
    /// One load all the time.
    pub(crate) fn steady(share: f64) -> Self {
        Self { phases: vec![(Duration::ZERO, share)], retries: 0, dying_share: 0.0 }
    }
}

/// What one pooler showed.
#[derive(Clone, Debug, Serialize)]
pub struct SideReport {
    /// The pooler, with its version.
    pub pooler: String,
    /// Whether it had to hold.
    pub kind: PoolerKind,
    /// What its database gave without a pooler, answers a second.
    pub capacity_per_s: f64,
    /// Requests.
    pub requests: u64,
    /// Callers' connections that were made.
    pub connects: u64,
    /// The load sent 99 of 100 requests at most so late, ms.
    pub late_ms: f64,
    /// What was looked at, with what a peer showed: for comparison only.
    pub checks: Vec<Check>,
    /// The end of its log, if something did not hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
    /// Errors by their text.
    pub error_texts: std::collections::BTreeMap<String, u64>,
    /// The run in spans.
    pub buckets: Vec<Bucket>,
}

/// Poolers under the same load.
pub struct GuardStage<'a> {
    sides: Vec<Side>,
    checks: Vec<Vec<Check>>,
    capacity: Vec<f64>,
    events: Vec<Event>,
    side_options: SideOptions,
    options: &'a DrillOptions,
    progress: &'a dyn Fn(&str),
    name: &'static str,
    began: Instant,
    load_began: Option<Instant>,
    load_span: Duration,
    busy: Option<Busy>,
    busy_share: f64,
    spans: Spans,
}

impl<'a> GuardStage<'a> {
    pub(crate) fn build(
        name: &'static str,
        options: &'a DrillOptions,
        size: fn(&mut SideOptions),
        progress: &'a dyn Fn(&str),
    ) -> anyhow::Result<Self> {
        let began = clock::now();
        process::raise_descriptor_limit();
        let spans = Spans::of(options.long);
        let mut side_options = SideOptions::new();
        side_options.query_ms = spans.query_ms;
        size(&mut side_options);
        let mut ours = Holdfast::new(&options.program)?.toml();
        if let Some(policy) = &options.policy {
            ours = ours.setting("overload_policy", policy);
        }
        let mut programs = vec![PoolerProgram::Holdfast(ours)];
        programs.extend(options.peers.iter().cloned());
        progress("poolers come up");
        let sides: Vec<Side> = at_once(&programs, |program| Side::start(program, &side_options))?;
        progress("the capacity of each database is measured");
        let capacity = at_once(&sides, |side| side.capacity_per_s(spans.calibration))?;
        let checks = sides.iter().map(|_| Vec::new()).collect();
        let (events, load_began, load_span, busy, busy_share) = (Vec::new(), None, Duration::ZERO, None, 0.0);
        Ok(Self {
            sides,
            checks,
            capacity,
            events,
            side_options,
            options,
            progress,
            name,
            began,
            load_began,
            load_span,
            busy,
            busy_share,
            spans,
        })
    }

    /// The program that is drilled.
    pub(crate) fn program(&self) -> &std::path::Path {
        &self.options.program
    }

    /// Times of this form.
    pub(crate) const fn spans(&self) -> Spans {
        self.spans
    }

    /// The short form's value, or the long form's.
    pub(crate) fn of<T>(&self, short: T, long: T) -> T {
        if self.options.long { long } else { short }
    }

    /// The load that all get is reckoned from it: the least that a database here gives, or what it was built to give.
    pub(crate) fn capacity_per_s(&self) -> f64 {
        self.capacity.iter().copied().fold(self.nominal_per_s(), f64::min)
    }

    fn nominal_per_s(&self) -> f64 {
        self.side_options.nominal_per_s()
    }

    /// The load begins on all poolers.
    pub(crate) fn begin(&mut self, plan: &Plan) -> anyhow::Result<()> {
        let capacity = self.capacity_per_s();
        let phase = |(from, share): &(Duration, f64)| Phase { from: *from, rate_per_s: share * capacity };
        (self.progress)("the load begins");
        for side in &mut self.sides {
            side.begin(LoadOptions {
                pooler: Address::Tcp(side.pooler.address()),
                user: USER.to_owned(),
                databases: self.side_options.pools.iter().map(|(name, _)| name.clone()).collect(),
                parameters: side.parameters(self.spans.patience),
                query: self.side_options.query(),
                patience: self.spans.patience,
                phases: plan.phases.iter().map(phase).collect(),
                retries: plan.retries,
                bye: Bye::Terminate,
                dying_share: plan.dying_share,
                seed: self.options.seed,
            })?;
        }
        self.load_began = Some(clock::now());
        self.busy = Busy::read();
        Ok(())
    }

    /// Since the load began.
    pub(crate) fn now(&self) -> Duration {
        self.load_began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    /// Writes down what is done now; returns when, since the load began.
    pub(crate) fn event(&mut self, what: impl Display) -> Duration {
        let (what, now) = (what.to_string(), self.now());
        (self.progress)(&what);
        self.events.push(Event { at_s: now.as_secs_f64(), what });
        now
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, span: Duration) {
        clock::rest(span);
    }

    /// Does something to all sides at once.
    pub(crate) fn each<T: Send>(
        &mut self,
        act: impl Fn(&mut Side) -> anyhow::Result<T> + Sync,
    ) -> anyhow::Result<Vec<T>> {
        thread::scope(|scope| {
            let act = &act;
            let running: Vec<_> = self.sides.iter_mut().map(|side| scope.spawn(move || act(side))).collect();
            running.into_iter().map(|one| one.join().map_err(|_| anyhow!("a side panicked"))?).collect()
        })
    }

    /// The load ends; from now on there are figures.
    pub(crate) fn end_load(&mut self) -> anyhow::Result<()> {
        self.load_span = self.now();
        self.busy_share = self.busy.as_ref().map_or(0.0, Busy::share_since);
        (self.progress)("the load ends");
        self.each(Side::finish_load)?;
        Ok(())
    }

    /// When the load ended, since its beginning.
    pub(crate) const fn end(&self) -> Duration {
        self.load_span
    }

    /// Scores all sides by their requests: what was seen, and whether it held.
    pub(crate) fn score<S: Display>(
        &mut self,
        what: &str,
        bar: impl Display,
        figure: impl Fn(&[Record]) -> (S, bool),
    ) {
        for (side, checks) in self.sides.iter().zip(&mut self.checks) {
            let (seen, passed) = figure(&side.seen.records);
            checks.push(Check {
                what: what.to_owned(),
                seen: seen.to_string(),
                bar: bar.to_string(),
                passed,
            });
        }
    }

    /// Scores all sides by a value of each.
    pub(crate) fn score_each<T, S: Display>(
        &mut self,
        what: &str,
        bar: impl Display,
        values: &[T],
        figure: impl Fn(&T) -> (S, bool),
    ) {
        for (value, checks) in values.iter().zip(&mut self.checks) {
            let (seen, passed) = figure(value);
            checks.push(Check {
                what: what.to_owned(),
                seen: seen.to_string(),
                bar: bar.to_string(),
                passed,
            });
        }
    }

    /// That at least `least` of the requests meant in a span were answered in time.
    pub(crate) fn answered(&mut self, what: &str, span: &Span, least: f64) {
        self.score(what, format!("at least {}", percent(least)), |records| {
            let share = figures::answered_share(records, span);
            (percent(share), share >= least)
        });
    }

    /// That from `limit` after `since` on, in each second, at least `share` is answered in time.
    pub(crate) fn normal_within(&mut self, what: &str, since: Duration, limit: Duration, share: f64) {
        let until = self.end();
        self.score(what, format!("within {:.0} s", limit.as_secs_f64()), |records| {
            let after = figures::normal_after(records, since, until, share);
            let seen =
                after.map_or_else(|| "never".to_owned(), |after| format!("{:.1} s", after.as_secs_f64()));
            (seen, after.is_some_and(|after| after <= limit))
        });
    }

    pub(crate) fn finish(self) -> anyhow::Result<Report> {
        ensure!(self.sides.iter().all(|side| side.load.is_none()), "the load still runs");
        let patience = self.spans.patience;
        let whole = Duration::ZERO..self.load_span;
        let not_measured = self.not_measured(&whole);
        let mut sides = Vec::new();
        let mut checks = Vec::new();
        let nominal = self.nominal_per_s();
        for ((side, own), capacity) in self.sides.iter().zip(self.checks).zip(&self.capacity) {
            let records = &side.seen.records;
            if side.kind == PoolerKind::Ours {
                checks.extend(own.iter().cloned());
            }
            let held = side.kind == PoolerKind::Peer || own.iter().all(|check| check.passed);
            let log = if held { String::new() } else { side.pooler.log() };
            let log: Vec<String> = log.lines().rev().take(QUOTED_LOG_LINES).map(str::to_owned).collect();
            sides.push(SideReport {
                log: log.into_iter().rev().collect(),
                pooler: side.name.clone(),
                kind: side.kind,
                capacity_per_s: round(*capacity),
                requests: records.len() as u64,
                connects: side.seen.connects,
                late_ms: round(figures::lateness(records, &whole, 0.99).as_secs_f64() * 1e3),
                checks: own,
                error_texts: side.seen.error_texts.clone(),
                buckets: figures::buckets(records, self.spans.bucket, self.load_span),
            });
        }
        let passed = not_measured.is_none() && !checks.is_empty() && checks.iter().all(|check| check.passed);
        Ok(Report {
            drill: self.name.to_owned(),
            seed: self.options.seed,
            passed,
            not_measured,
            took_s: self.began.elapsed().as_secs_f64(),
            checks,
            events: self.events,
            view: View::Poolers {
                patience_s: patience.as_secs_f64(),
                nominal_per_s: nominal,
                machine_busy: round(self.busy_share * 100.0) / 100.0,
                bucket_s: self.spans.bucket.as_secs_f64(),
                sides,
            },
        })
    }

    /// Why the figures say nothing of a pooler, if so.
    fn not_measured(&self, whole: &Span) -> Option<String> {
        let (nominal, most_late) = (self.nominal_per_s(), self.spans.most_late);
        self.sides.iter().zip(&self.capacity).find_map(|(side, capacity)| {
            let late = figures::lateness(&side.seen.records, whole, 0.99);
            let name = &side.name;
            if late > most_late {
                return Some(format!("the load on {name} was {late:.0?} late in one of 100 requests"));
            }
            if side.seen.not_sent > 0 {
                return Some(format!("{} requests to {name} were not sent", side.seen.not_sent));
            }
            (*capacity < LEAST_CAPACITY_SHARE * nominal).then(|| {
                format!("the database of {name} gave {capacity:.0} answers/s instead of {nominal:.0}: the machine is busy")
            })
        })
    }
}

/// Jiffies of all processors together: those that worked, and all.
pub(super) struct Busy {
    worked: u64,
    all: u64,
}

impl Busy {
    pub(super) fn read() -> Option<Self> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let fields: Vec<u64> = text
            .lines()
            .next()?
            .split_ascii_whitespace()
            .skip(1)
            .map_while(|field| field.parse().ok())
            .collect();
        // user, nice, system, idle, iowait, irq, softirq, steal: proc(5).
        let all = fields.iter().take(8).sum();
        let idle = fields.get(3)? + fields.get(4)?;
        Some(Self { worked: all - idle, all })
    }

    pub(super) fn share_since(&self) -> f64 {
        Self::read().map_or(0.0, |now| (now.worked - self.worked) as f64 / (now.all - self.all).max(1) as f64)
    }
}

/// One thread for each; the first error, if any.
pub(super) fn at_once<A: Sync, B: Send>(
    all: &[A],
    act: impl Fn(&A) -> anyhow::Result<B> + Sync,
) -> anyhow::Result<Vec<B>> {
    thread::scope(|scope| {
        let act = &act;
        let running: Vec<_> = all.iter().map(|one| scope.spawn(move || act(one))).collect();
        running.into_iter().map(|one| one.join().map_err(|_| anyhow!("a thread panicked"))?).collect()
    })
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

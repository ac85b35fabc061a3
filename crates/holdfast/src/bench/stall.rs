//! `holdfast bench stall`.

use super::progress::Progress;
use super::{ourselves, pgbouncer};
use crate::cli::StallArgs;
use crate::output;
use drill::stall::{BenchOptions, BenchReport, Variant, bench};
use std::process::ExitCode;
use std::time::Duration;

/// Runs the variants and prints the report.
pub(crate) fn run(args: &StallArgs) -> anyhow::Result<ExitCode> {
    let ours = ourselves()?;
    let our_name = ours.name();
    let mut programs = vec![ours];
    programs.extend(pgbouncer(&args.beside)?);
    let mut options = BenchOptions::new(programs);
    if args.all {
        options.variants = Variant::all();
    }
    options.clients = args.clients;
    options.after = Duration::from_secs(args.after);
    let progress = Progress::new();
    let report = bench(&options, &|now| {
        let step = format!("variant {} of {}", now.variant + 1, now.variants);
        let detail =
            format!("{}: second {} of {}, {} answers", now.pooler, now.second + 1, now.seconds, now.good);
        progress.show(&step, &detail);
    })?;
    progress.end();
    output::result(&if args.json { serde_json::to_string_pretty(&report)? } else { report.table() });
    Ok(if holds(&report, &our_name) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether our pooler was measured in every variant and stalled in none.
fn holds(report: &BenchReport, our_name: &str) -> bool {
    let mut ours = report.rows.iter().filter(|row| row.pooler == our_name);
    ours.all(|row| row.report.as_ref().is_some_and(|report| !report.stalled))
}

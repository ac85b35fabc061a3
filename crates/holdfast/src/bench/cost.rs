//! `holdfast bench cost`.

use super::ourselves;
use super::progress::Progress;
use crate::cli::CostArgs;
use crate::output;
use drill::cost::{CostOptions, CostReport, bench};
use drill::peer::{Pgbouncer, PoolerProgram};
use std::process::ExitCode;

/// Runs the cases and prints the report.
pub(crate) fn run(args: &CostArgs) -> anyhow::Result<ExitCode> {
    let reference = PoolerProgram::Pgbouncer(Pgbouncer::find(args.pgbouncer.as_deref())?);
    let mut options = CostOptions::new(ourselves()?, reference);
    if !args.cases.is_empty() {
        options.cases.clone_from(&args.cases);
    }
    options.blocks = args.blocks;
    options.slice_s = args.slice;
    options.idle_clients = args.idle_clients;
    options.seed = args.seed;
    let progress = Progress::new();
    let report = bench(&options, &|now| {
        progress.show(&now.case, &format!("block {} of {}", now.block + 1, now.blocks));
    })?;
    progress.end();
    output::result(&if args.json { serde_json::to_string_pretty(&report)? } else { report.table() });
    Ok(if is_whole(&report) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether every case was measured to its end.
fn is_whole(report: &CostReport) -> bool {
    report.cases.iter().all(|case| case.error.is_none())
}

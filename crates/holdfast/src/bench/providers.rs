//! `holdfast bench providers`.

use super::progress::Progress;
use crate::cli::ProvidersArgs;
use crate::output;
use anyhow::Context as _;
use drill::fleet::{FleetOptions, bench, run_part};
use std::process::ExitCode;
use std::time::Duration;

/// Runs the fleet and prints the report; or serves as one of its processes.
pub(crate) fn run(args: &ProvidersArgs) -> anyhow::Result<ExitCode> {
    if args.part {
        return run_part().map(|()| ExitCode::SUCCESS);
    }
    let options = FleetOptions {
        program: std::env::current_exe().context("cannot find our own program")?,
        arguments: ["bench", "providers", "--part"].map(str::to_owned).to_vec(),
        count: args.count,
        admissions_per_second: args.rate,
        idle_for: Duration::from_secs(args.idle),
    };
    let progress = Progress::new();
    let report = bench(&options, &|now| {
        progress.show(now.step, &format!("{} of {} providers", now.connected, now.count));
    })?;
    progress.end();
    output::result(&if args.json { serde_json::to_string_pretty(&report)? } else { report.table() });
    Ok(if report.is_back_in_time() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

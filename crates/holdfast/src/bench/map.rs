//! `holdfast bench map`.

use super::pgbouncer;
use super::progress::Progress;
use crate::cli::MapArgs;
use crate::output;
use anyhow::Context as _;
use drill::guard::map::{MapOptions, map};
use drill::peer::{Holdfast, PoolerProgram};
use std::fs;
use std::process::ExitCode;

/// Draws the map, and prints its table.
pub(crate) fn run(args: &MapArgs) -> anyhow::Result<ExitCode> {
    let mut ours = Holdfast::new(&std::env::current_exe().context("cannot find our own program")?)?.toml();
    if let Some(policy) = &args.policy {
        ours = ours.setting("overload_policy", policy);
    }
    let mut programs = vec![PoolerProgram::Holdfast(ours)];
    programs.extend(pgbouncer(&args.beside)?);
    let options = if args.fine {
        MapOptions::fine(programs, args.seed)
    } else {
        MapOptions::coarse(programs, args.seed)
    };
    let progress = Progress::new();
    let report = map(&options, &|cell, cells, what| {
        progress.show(&format!("cell {} of {cells}: {what}", cell + 1), "");
    })?;
    progress.end();
    if let Some(path) = &args.picture {
        fs::write(path, report.picture()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    output::result(&if args.json { serde_json::to_string_pretty(&report)? } else { report.table() });
    Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

//! `holdfast drill`.

use crate::bench::pgbouncer;
use crate::bench::progress::Progress;
use crate::cli::DrillArgs;
use crate::output;
use anyhow::{Context as _, bail};
use drill::scenario::{ALL, DrillOptions, Report, Scenario, find};
use std::fs;
use std::process::ExitCode;

/// The machine was too busy; later it may not be (`EX_TEMPFAIL` of sysexits.h).
const NOT_MEASURED: u8 = 75;

/// Lists the drills, or runs some and prints what they found.
pub(crate) fn run(args: &DrillArgs) -> anyhow::Result<ExitCode> {
    if args.names.is_empty() {
        output::result(&list(args.json)?);
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = chosen(&args.names)?;
    let options = DrillOptions {
        program: std::env::current_exe().context("cannot find our own program")?,
        long: args.long,
        seed: args.seed.unwrap_or_else(|| std::process::id().into()),
        peers: pgbouncer(&args.beside)?.into_iter().collect(),
        policy: args.policy.clone(),
    };
    let mut reports = Vec::new();
    for scenario in chosen {
        if let (Some(missing), true) = (scenario.missing(), args.names == ["all"]) {
            output::error(&format!("{} is left out: {missing}", scenario.name));
            continue;
        }
        let progress = Progress::new();
        let report = scenario.run(&options, &|now| progress.show(scenario.name, now))?;
        progress.end();
        if let Some(folder) = &args.pictures {
            fs::create_dir_all(folder)?;
            let path = folder.join(format!("{}.svg", scenario.name));
            fs::write(&path, report.picture()).with_context(|| format!("cannot write {}", path.display()))?;
        }
        if !args.json {
            output::result(&report.table());
        }
        reports.push(report);
    }
    if args.json {
        output::result(&serde_json::to_string_pretty(&reports)?);
    }
    Ok(verdict(&reports))
}

/// Something that did not hold outweighs what could not be measured.
fn verdict(reports: &[Report]) -> ExitCode {
    let mut others = reports.iter().filter(|report| !report.passed).peekable();
    if others.peek().is_none() {
        ExitCode::SUCCESS
    } else if others.all(|report| report.not_measured.is_some()) {
        ExitCode::from(NOT_MEASURED)
    } else {
        ExitCode::FAILURE
    }
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Scenario>> {
    if names == ["all"] {
        return Ok(ALL.iter().collect());
    }
    let find = |name: &String| match find(name) {
        Some(scenario) => Ok(scenario),
        None => bail!("no drill is called {name}; `holdfast drill` lists them"),
    };
    names.iter().map(find).collect()
}

fn list(json: bool) -> anyhow::Result<String> {
    if json {
        let names: Vec<_> = ALL
            .iter()
            .map(|scenario| {
                serde_json::json!({ "name": scenario.name, "about": scenario.about, "seconds": scenario.seconds })
            })
            .collect();
        return Ok(serde_json::to_string_pretty(&names)?);
    }
    Ok(ALL.iter().fold("holdfast drill NAME… runs:\n".to_owned(), |list, scenario| {
        list + &format!("\n  {:<24}{} ({} s)", scenario.name, scenario.about, scenario.seconds)
    }))
}

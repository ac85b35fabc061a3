//! `holdfast drill`.

use crate::bench::progress::Progress;
use crate::cli::DrillArgs;
use crate::output;
use anyhow::{Context as _, bail};
use drill::scenario::{ALL, DrillOptions, Report, Scenario, find};
use std::fs;
use std::process::ExitCode;

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
    Ok(if reports.iter().all(passed) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

const fn passed(report: &Report) -> bool {
    report.passed
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

//! `holdfast bench`: the figures of the manual, made on this machine.

pub(crate) mod cost;
pub(crate) mod map;
pub(crate) mod progress;
pub(crate) mod providers;
pub(crate) mod stall;

use crate::cli::BesideArgs;
use crate::output;
use anyhow::Context as _;
use drill::peer::{Holdfast, MissingPgbouncer, Pgbouncer, PoolerProgram};

/// This very program.
fn ourselves() -> anyhow::Result<PoolerProgram> {
    let program = std::env::current_exe().context("cannot find our own program")?;
    Ok(PoolerProgram::Holdfast(Holdfast::new(&program)?))
}

/// The one to compare with, if there is one or one was asked for.
pub(crate) fn pgbouncer(beside: &BesideArgs) -> anyhow::Result<Option<PoolerProgram>> {
    if beside.alone {
        return Ok(None);
    }
    match Pgbouncer::find(beside.pgbouncer.as_deref()) {
        Ok(pgbouncer) => Ok(Some(PoolerProgram::Pgbouncer(pgbouncer))),
        Err(error) if error.is::<MissingPgbouncer>() => {
            output::error(&format!("{error}; holdfast runs alone"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

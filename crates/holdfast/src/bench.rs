//! `holdfast bench`: the figures of the manual, made on this machine.

pub(crate) mod cost;
pub(crate) mod progress;
pub(crate) mod providers;
pub(crate) mod stall;

use anyhow::Context as _;
use drill::peer::{Holdfast, PoolerProgram};

/// This very program.
fn ourselves() -> anyhow::Result<PoolerProgram> {
    let program = std::env::current_exe().context("cannot find our own program")?;
    Ok(PoolerProgram::Holdfast(Holdfast::new(&program)?))
}

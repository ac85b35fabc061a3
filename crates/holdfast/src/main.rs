//! The program: command line in, exit code out.

mod bench;
mod check;
mod cli;
mod conformance;
mod db;
mod drill;
mod keys;
mod log;
mod output;
mod process;
mod provider;
mod proxy;
mod roles;
mod serve;
mod service;
mod up;

use clap::Parser;
use cli::{Bench, Cli, Command};
use std::process::ExitCode;

/// Something is wrong with the command line (`EX_USAGE` of sysexits.h).
const USAGE: u8 = 64;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(wrong) => {
            // Help and version arrive here as well, and are no mistake. Where nobody reads, nothing is left to say.
            drop(wrong.print());
            return if wrong.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let done = match cli.command {
        Command::Pooler(options) if options.check => check::check(&options.file, options.json),
        Command::Pooler(options) => serve::serve(options.file, options.json),
        Command::Provider(command) => provider::run(command),
        Command::Proxy(command) => proxy::run(command),
        Command::Api(options) => service::api(&options),
        Command::Relay(options) => service::relay(&options),
        Command::Worker(options) => service::worker(&options),
        Command::Keys(options) => keys::run(options),
        Command::Up(options) => up::up(options),
        Command::Init(options) => up::init(options),
        Command::UpChild(options) => up::child(&options),
        Command::Conformance(command) => conformance::conformance(command),
        Command::Db(command) => db::run(command),
        Command::Drill(options) => drill::run(&options),
        Command::Bench(Bench::Stall(options)) => bench::stall::run(&options),
        Command::Bench(Bench::Cost(options)) => bench::cost::run(&options),
        Command::Bench(Bench::Map(options)) => bench::map::run(&options),
        Command::Bench(Bench::Providers(options)) => bench::providers::run(&options),
    };
    done.unwrap_or_else(|error| {
        output::error(&format!("holdfast: {error:#}"));
        ExitCode::FAILURE
    })
}

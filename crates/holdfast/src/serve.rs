//! `holdfast pooler FILE`: the pooler until it is told to stop.

use crate::check::complain;
use anyhow::Context as _;
use pooler::logging::{LogOptions, Logging};
use pooler::run::{RunOptions, run};
use pooler::tls::{self, TlsContext};
use settings::diagnostic::{Diagnostic, Severity};
use settings::pooler::load;
use std::path::{PathBuf, absolute};
use std::process::ExitCode;
use std::sync::Arc;

/// Runs in the foreground.
pub(crate) fn serve(file: PathBuf, json: bool) -> anyhow::Result<ExitCode> {
    // Read again at each reload, wherever the process stands then.
    let file = absolute(&file).with_context(|| format!("no such path: {}", file.display()))?;
    let loaded = match load(&file) {
        Ok(loaded) => loaded,
        Err(errors) => {
            complain(&file, &errors, json)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let tls = match tls::load(&loaded, &TlsContext::default()) {
        Ok(tls) => tls,
        Err(errors) => {
            complain(&file, &errors, json)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let general = &loaded.config.general;
    let options =
        LogOptions { format: general.log_format, logfile: general.logfile.clone(), verbose: general.verbose };
    let logging = Arc::new(Logging::start(&options)?);
    loaded.notes.iter().for_each(log);
    let options = RunOptions {
        config_path: file,
        loaded,
        tls,
        version: env!("CARGO_PKG_VERSION"),
        logging: Arc::clone(&logging),
    };
    let ended = run(options);
    if let Err(error) = &ended {
        tracing::error!("{error}");
    } else {
        tracing::info!("process down");
    }
    // What still waits is written before the process ends.
    drop(logging);
    Ok(if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn log(note: &Diagnostic) {
    let place = note.place.as_ref().map(|place| format!("{}:{}", place.file().display(), place.line()));
    let help = note.help.as_deref();
    match note.severity {
        Severity::Note => tracing::info!(place, help, "{}", note.message),
        Severity::Warning | Severity::Error => tracing::warn!(place, help, "{}", note.message),
    }
}

//! `holdfast pooler FILE --check`: what is wrong with the configuration, and what is worth knowing about it.

use crate::output;
use pooler::tls::{self, TlsContext};
use settings::diagnostic::{Diagnostic, to_json, to_text};
use settings::pooler::{Loaded, PoolerConfig, load};
use std::path::Path;
use std::process::ExitCode;

/// Reads the file and all that it names, and binds nothing.
pub(crate) fn check(file: &Path, json: bool) -> anyhow::Result<ExitCode> {
    // The files of TLS too: a wrong key is found before it is needed.
    let loaded = load(file).and_then(|loaded| match tls::load(&loaded, &TlsContext::default()) {
        Ok(_) => Ok(loaded),
        Err(errors) => Err(errors),
    });
    let (findings, ok): (&[Diagnostic], bool) = match &loaded {
        Ok(loaded) => (&loaded.notes, true),
        Err(errors) => (errors, false),
    };
    if json {
        output::result(&as_json(file, ok, findings)?);
    } else {
        output::result(&(to_text(findings) + &summary(file, &loaded)));
    }
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The errors of a file that was meant to run, on standard error.
pub(crate) fn complain(file: &Path, errors: &[Diagnostic], json: bool) -> anyhow::Result<()> {
    if json {
        output::error(&as_json(file, false, errors)?);
    } else {
        output::error(&(to_text(errors) + &failed(file, errors)));
    }
    Ok(())
}

fn as_json(file: &Path, ok: bool, findings: &[Diagnostic]) -> anyhow::Result<String> {
    let findings: serde_json::Value = serde_json::from_str(&to_json(findings))?;
    Ok(serde_json::json!({ "file": file.to_string_lossy(), "ok": ok, "findings": findings }).to_string())
}

fn summary(file: &Path, loaded: &Result<Loaded, Vec<Diagnostic>>) -> String {
    match loaded {
        Ok(loaded) => format!("{} can run: {}", file.display(), outline(&loaded.config)),
        Err(errors) => failed(file, errors),
    }
}

fn failed(file: &Path, errors: &[Diagnostic]) -> String {
    let count = errors.len();
    format!("{} cannot run: {count} error{}", file.display(), if count == 1 { "" } else { "s" })
}

/// What the file amounts to, in a line.
fn outline(config: &PoolerConfig) -> String {
    let general = &config.general;
    let mut listens: Vec<String> = general.listen.iter().map(ToString::to_string).collect();
    if let Some(directory) = &general.unix_socket_dir {
        listens.push(directory.join(format!(".s.PGSQL.{}", general.listen_port)).display().to_string());
    }
    let databases = config.databases.len();
    let any = if config.fallback_database.is_some() { " and any other" } else { "" };
    format!(
        "listens on {}; {databases} database{}{any}; {} users in auth_file; {} clients at most",
        listens.join(", "),
        if databases == 1 { "" } else { "s" },
        config.secrets.len(),
        general.max_client_conn,
    )
}

//! The pooler's configuration: [`load`] a file, get what runs or everything that is wrong with it.

use crate::diagnostic::{Diagnostic, Report};
use crate::source::{Disk, Memory, Source, Sources};
use crate::written::{self, Dialect, Written};
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod apply;
pub mod auth_file;
mod build;
mod databases;
mod effective;
mod lanes;
mod listen;
mod model;
mod reference;
mod secret;
mod show;
pub mod table;
mod tls;
mod truth;
mod validate;
mod value;

pub use effective::PoolSettings;
pub use lanes::{
    MAX_LANE_NAME_BYTES, MAX_LANES, MAX_PATTERN_BYTES, MAX_PATTERNS, MOST_GUARANTEED_PERCENT, PLAIN_LANE,
};
pub use model::{
    AuthType, BudgetSettings, ClientDisconnect, Database, General, GuardPolicy, Keepalive, Lane, LockPileup,
    LogFormat, PoolMode, PoolerConfig, Secret, ServerAddress, ServerBudget, SessionState, UserSettings,
};
pub use reference::reference;
pub use show::{ConfigRow, show_config};
pub use tls::{
    CipherSuite, KeyExchange, KeyExchangeGroups, SslMode, Tls, Tls12Ciphers, Tls13Ciphers, TlsProtocols,
};
pub use truth::{TruthRow, TruthState, canonical, truth};

/// Name that [`parse_ini`] and [`parse_toml`] give to their text.
const INI_NAME: &str = "pgbouncer.ini";
const TOML_NAME: &str = "pooler.toml";

/// A configuration that can run.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What runs.
    pub config: PoolerConfig,
    /// What is worth knowing about it: notes and warnings.
    pub notes: Vec<Diagnostic>,
    /// The files read: the first one, what it includes, `auth_file`.
    pub files: Vec<PathBuf>,
    places: build::GeneralPlaces,
}

impl Loaded {
    /// An error about what a setting of `[pgbouncer]` names, at the place where it is written. For those who open the
    /// files that are only named here. `message` must hold no secret.
    #[must_use]
    pub fn error_at(&self, setting: &str, code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message).at_any(self.places.get(setting))
    }
}

/// Reads a file and all that it names. The name ends in `.toml` for TOML; anything else is `pgbouncer.ini`.
///
/// # Errors
/// Everything that is wrong, each with its place.
pub fn load(path: &Path) -> Result<Loaded, Vec<Diagnostic>> {
    parse(path, &Disk)
}

/// [`load`] with the files from `sources`.
///
/// # Errors
/// Everything that is wrong, each with its place.
pub fn parse(path: &Path, sources: &dyn Sources) -> Result<Loaded, Vec<Diagnostic>> {
    let mut report = Report::default();
    let loaded = read(path, sources, &mut report)
        .and_then(|written| build::build(&written, sources, &mut report).map(|built| (written, built)));
    let notes = report.finish()?;
    let Some((written, (config, places))) = loaded else {
        return Err(vec![Diagnostic::error("unreadable", "nothing could be read")]);
    };
    let files = written.files.into_iter().chain(config.general.auth_file.clone()).collect();
    Ok(Loaded { config, notes, files, places })
}

/// The text of a `pgbouncer.ini` that names no other file.
///
/// # Errors
/// Everything that is wrong, each with its place.
pub fn parse_ini(text: &str) -> Result<Loaded, Vec<Diagnostic>> {
    parse(Path::new(INI_NAME), &Memory::new().with(INI_NAME, text))
}

/// The same settings in TOML, naming no other file.
///
/// # Errors
/// Everything that is wrong, each with its place.
pub fn parse_toml(text: &str) -> Result<Loaded, Vec<Diagnostic>> {
    parse(Path::new(TOML_NAME), &Memory::new().with(TOML_NAME, text))
}

fn read(path: &Path, sources: &dyn Sources, report: &mut Report) -> Option<Written> {
    let source: Arc<Source> = written::ini::open(path, sources, None, report)?;
    Some(match dialect(path) {
        Dialect::Toml => written::toml::read(&source, report),
        Dialect::Ini => written::ini::read(&source, sources, report),
    })
}

fn dialect(path: &Path) -> Dialect {
    match path.extension() {
        Some(extension) if extension.eq_ignore_ascii_case("toml") => Dialect::Toml,
        _ => Dialect::Ini,
    }
}

/// The name most like `name`, if any is like it.
pub(crate) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LEAST_LIKENESS: f64 = 0.7;
    const LONGEST_NAME: usize = 64;
    if name.len() > LONGEST_NAME {
        return None;
    }
    let name = name.to_lowercase();
    names
        .into_iter()
        .map(|candidate| (strsim::normalized_damerau_levenshtein(&name, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= LEAST_LIKENESS)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests;

//! The rows of `SHOW CONFIG`.

use super::model::PoolerConfig;
use super::table::{self, Setting, Status};

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigRow {
    /// Name of the setting.
    pub key: &'static str,
    /// The value that runs; empty for none. Durations in seconds.
    pub value: String,
    /// What holds when nothing is written.
    pub default: &'static str,
    /// Whether it can be changed without a restart.
    pub changeable: bool,
}

/// All settings of `[pgbouncer]`, sorted by name. Of what is not built, the value is how it runs. No secrets.
#[must_use]
pub fn show_config(config: &PoolerConfig) -> Vec<ConfigRow> {
    let mut rows: Vec<ConfigRow> = table::general()
        .map(|setting| ConfigRow {
            key: setting.name,
            value: value(setting, config),
            default: setting.default_in(config.dialect),
            changeable: !setting.needs_restart,
        })
        .collect();
    rows.sort_by_key(|row| row.key);
    rows
}

fn value(setting: &Setting<super::General>, config: &PoolerConfig) -> String {
    match &setting.status {
        Status::Built(binding) => (binding.show)(&config.general),
        Status::NotBuilt(accepted) => accepted.first().copied().unwrap_or_default().to_owned(),
        Status::NoEffect(_) => setting.default.to_owned(),
        Status::Joint => joint(setting.name, config),
    }
}

fn joint(name: &str, config: &PoolerConfig) -> String {
    let general = &config.general;
    match name {
        "conffile" => {
            general.conffile.as_ref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
        }
        "listen_addr" => listen_addr(config),
        "server_check_query" if general.server_check_query.is_empty() => "<empty>".to_owned(),
        "server_check_query" => general.server_check_query.clone(),
        _ => String::new(),
    }
}

fn listen_addr(config: &PoolerConfig) -> String {
    let listen = &config.general.listen;
    if listen.len() == 2 && listen.iter().all(|address| address.ip().is_unspecified()) {
        return "*".to_owned();
    }
    listen.iter().map(|address| address.ip().to_string()).collect::<Vec<_>>().join(",")
}

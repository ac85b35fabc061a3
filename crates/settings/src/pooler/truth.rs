//! The same settings in three places: the file as it stands, what was loaded from it, and what the process really does.

use super::model::{Database, PoolerConfig, Secret, ServerAddress};
use super::show::show_config;
use super::table::{self, Setting, Status};
use std::collections::{BTreeMap, BTreeSet};

/// What a setting says where, and what would make them the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthRow {
    /// `SETTING`, `databases.NAME.SETTING` or `users.NAME.SETTING`.
    pub key: String,
    /// In the file; empty for none, or if the file cannot be read. Secrets are only said to be there.
    pub file: String,
    /// In what was loaded last.
    pub loaded: String,
    /// In force.
    pub live: String,
    /// What is to be done.
    pub state: TruthState,
}

/// What would make a setting the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruthState {
    /// Nothing: it is.
    Same,
    /// A reload: the file has changed since.
    NotReloaded,
    /// A restart: it was loaded, and is read only at the start.
    PendingRestart,
}

impl TruthState {
    /// Its name.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::NotReloaded => "not_reloaded",
            Self::PendingRestart => "pending_restart",
        }
    }
}

/// One value, as it is shown and as it is compared.
#[derive(Default, PartialEq, Eq)]
struct Value {
    shown: String,
    /// Of a secret: told apart, and never shown.
    hidden: Option<String>,
}

/// Every setting, sorted by key. `file` is none if it cannot be read: then nothing is said to differ from it.
/// `started` is what the process began with, from which it has what takes a restart to change.
#[must_use]
pub fn truth(file: Option<&PoolerConfig>, loaded: &PoolerConfig, started: &PoolerConfig) -> Vec<TruthRow> {
    let in_file = file.map(values);
    let (loaded, started) = (values(loaded), values(started));
    let keys = loaded.keys().chain(in_file.iter().flat_map(BTreeMap::keys)).cloned();
    let keys: BTreeSet<String> = keys.collect();
    let restarts: BTreeSet<&str> =
        table::general().filter(|setting| setting.needs_restart).map(|setting| setting.name).collect();
    let none = Value::default();
    keys.into_iter()
        .map(|key| {
            let loaded = loaded.get(&key).unwrap_or(&none);
            let live = if restarts.contains(&*key) { started.get(&key).unwrap_or(&none) } else { loaded };
            let file = in_file.as_ref().map(|values| values.get(&key).unwrap_or(&none));
            let state = match file {
                Some(file) if file != loaded => TruthState::NotReloaded,
                _ if loaded != live => TruthState::PendingRestart,
                _ => TruthState::Same,
            };
            TruthRow {
                file: file.map(|value| value.shown.clone()).unwrap_or_default(),
                loaded: loaded.shown.clone(),
                live: live.shown.clone(),
                state,
                key,
            }
        })
        .collect()
}

/// The settings as lines that mean the same for every pooler that runs the same: to be hashed. Secrets are not in it.
#[must_use]
pub fn canonical(rows: impl IntoIterator<Item = (String, String)>) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    // Where the file stands is no difference between two poolers.
    for (key, value) in rows.into_iter().filter(|(key, _)| key != "conffile") {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{key} = {value:?}");
    }
    text
}

fn values(config: &PoolerConfig) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    for row in show_config(config) {
        values.insert(row.key.to_owned(), Value { shown: row.value, hidden: None });
    }
    let fallback = config.fallback_database.iter().map(|database| ("*", &**database));
    for (name, database) in
        config.databases.iter().map(|(name, database)| (&**name, &**database)).chain(fallback)
    {
        add_database(&mut values, name, database);
    }
    for (name, user) in &config.users {
        add(&mut values, "users", name, table::USERS.iter(), user);
    }
    for (name, secret) in &config.secrets {
        let hidden = Some(text_of(secret));
        values.insert(format!("auth_file.{name}"), Value { shown: SET.to_owned(), hidden });
    }
    values
}

/// What is shown of a secret.
const SET: &str = "(set)";

fn add_database(values: &mut BTreeMap<String, Value>, name: &str, database: &Database) {
    add(values, "databases", name, table::DATABASES.iter(), database);
    let (host, port) = match &database.address {
        ServerAddress::Tcp { host, port } => (host.clone(), *port),
        ServerAddress::Unix { directory, port } => (directory.to_string_lossy().into_owned(), *port),
    };
    let plain = |shown: String| Value { shown, hidden: None };
    values.insert(format!("databases.{name}.host"), plain(host));
    values.insert(format!("databases.{name}.port"), plain(port.to_string()));
    if let Some(secret) = &database.password {
        let hidden = Some(text_of(secret));
        values.insert(format!("databases.{name}.password"), Value { shown: SET.to_owned(), hidden });
    }
}

fn add<T: 'static>(
    values: &mut BTreeMap<String, Value>,
    section: &str,
    name: &str,
    settings: impl Iterator<Item = &'static Setting<T>>,
    from: &T,
) {
    for setting in settings {
        let Status::Built(binding) = &setting.status else { continue };
        if setting.name == "password" {
            continue;
        }
        let shown = (binding.show)(from);
        if !shown.is_empty() {
            values.insert(format!("{section}.{name}.{}", setting.name), Value { shown, hidden: None });
        }
    }
}

/// A secret as it is compared within this process.
fn text_of(secret: &Secret) -> String {
    match secret {
        Secret::Plain(text) | Secret::Md5(text) | Secret::ScramVerifier(text) => text.clone(),
    }
}

#[cfg(test)]
mod tests;

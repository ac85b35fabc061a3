//! The one table of settings. Parsing, refusals, `SHOW CONFIG` and the reference are all made from it.

use super::model::{Database, General, Lane, UserSettings};
use super::value::{Refusal, Value};
use crate::written::Dialect;
use std::time::Duration;

mod budget;
mod databases;
mod general;
mod lanes;
mod timeouts;
mod tls;
mod users;

/// Section `[databases]`.
pub static DATABASES: &[Setting<Database>] = databases::SETTINGS;
/// Section `[users]`.
pub static USERS: &[Setting<UserSettings>] = users::SETTINGS;
/// Section `[lanes]`.
pub static LANES: &[Setting<Lane>] = lanes::SETTINGS;

/// Section `[pgbouncer]`.
pub fn general() -> impl Iterator<Item = &'static Setting<General>> + Clone {
    general::SETTINGS.iter().chain(timeouts::SETTINGS).chain(budget::SETTINGS).chain(tls::SETTINGS)
}

/// One setting.
pub struct Setting<T: 'static> {
    /// Its name.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// Default in an ini file, PgBouncer's.
    pub default: &'static str,
    /// Default in TOML where it differs.
    pub default_toml: Option<&'static str>,
    /// What it is for, in one line.
    pub meaning: &'static str,
    /// Whether it takes a restart to change.
    pub needs_restart: bool,
    /// Whether it is PgBouncer's or ours.
    pub is_own: bool,
    /// Whether it is built.
    pub status: Status<T>,
}

/// Type, unit and bounds of a setting's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Time in seconds, or with a unit.
    Duration {
        /// The least.
        minimum: Duration,
    },
    /// Size in bytes, or with a unit.
    Bytes {
        /// The least.
        minimum: u64,
        /// The most.
        maximum: u64,
    },
    /// A whole number.
    Integer {
        /// The least.
        minimum: u64,
        /// The most.
        maximum: u64,
    },
    /// On or off.
    Boolean,
    /// Octal mode of a file.
    FileMode,
    /// One of some words.
    Choice {
        /// What is built.
        built: &'static [&'static str],
        /// What only PgBouncer has so far.
        not_built: &'static [&'static str],
    },
    /// Any text.
    Text,
    /// Names with commas between.
    List,
    /// A file or folder.
    Path,
    /// Address and port.
    Address,
}

/// Whether a setting is built.
pub enum Status<T: 'static> {
    /// It does what it says.
    Built(Binding<T>),
    /// It does what it says; its value is made together with others.
    Joint,
    /// PgBouncer has it, we do not yet. Values that ask for nothing are accepted, the first of them being
    /// what holds when nothing is written; any other is refused.
    NotBuilt(&'static [&'static str]),
    /// Accepted with a note, for the reason given: it changes nothing here.
    NoEffect(&'static str),
}

/// How a setting is written into what runs, and read from it.
pub struct Binding<T: 'static> {
    /// Writes the value of a text.
    pub(super) read: fn(&mut T, &str, &Kind) -> Result<(), Refusal>,
    /// Reads it as text.
    pub(super) show: fn(&T) -> String,
}

impl<T> Setting<T> {
    /// The default for a kind of file.
    #[must_use]
    pub fn default_in(&self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Ini => self.default,
            Dialect::Toml => self.default_toml.unwrap_or(self.default),
        }
    }

    const fn new(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        status: Status<T>,
        meaning: &'static str,
    ) -> Self {
        Self { name, kind, default, default_toml: None, meaning, needs_restart: false, is_own: false, status }
    }

    /// With another default in TOML.
    const fn toml(mut self, default: &'static str) -> Self {
        self.default_toml = Some(default);
        self
    }

    /// Changed only by a restart.
    const fn restart(mut self) -> Self {
        self.needs_restart = true;
        self
    }

    /// Not one of PgBouncer's.
    const fn own(mut self) -> Self {
        self.is_own = true;
        self
    }
}

const DURATION: Kind = Kind::Duration { minimum: Duration::ZERO };
const DURATION_FROM_1_MS: Kind = Kind::Duration { minimum: Duration::from_millis(1) };
/// Counts of connections and the like, 0 included.
const COUNT: Kind = Kind::Integer { minimum: 0, maximum: 10_000_000 };
const COUNT_FROM_1: Kind = Kind::Integer { minimum: 1, maximum: 10_000_000 };
const PORT: Kind = Kind::Integer { minimum: 0, maximum: 65535 };
const POOL_MODE: Kind = Kind::Choice { built: &["session", "transaction", "statement"], not_built: &[] };
const SSLMODE: Kind = Kind::Choice {
    built: &["disable", "allow", "prefer", "require", "verify-ca", "verify-full"],
    not_built: &[],
};
const SESSION_STATE: Kind = Kind::Choice { built: &["pin", "refuse", "ignore"], not_built: &[] };
const LOCK_PILEUP: Kind =
    Kind::Choice { built: &["off", "warn", "cancel-waiting-ddl", "cancel-blocker"], not_built: &[] };
const OVERLOAD_POLICY: Kind = Kind::Choice { built: &["off", "observe", "on"], not_built: &[] };
const GUARD_POLICY: Kind = Kind::Choice { built: &["off", "observe", "on"], not_built: &[] };
const CLIENT_DISCONNECT: Kind = Kind::Choice { built: &["cancel", "close", "finish"], not_built: &[] };

/// Binds a setting to a field.
macro_rules! field {
    ($target:ty, $($field:ident).+) => {
        $crate::pooler::table::Status::Built($crate::pooler::table::Binding {
            read: |target: &mut $target, text, kind| {
                target.$($field).+ = $crate::pooler::value::Value::read(text, kind)?;
                Ok(())
            },
            show: |target: &$target| $crate::pooler::table::shown(&target.$($field).+),
        })
    };
}
use field;

fn shown(value: &impl Value) -> String {
    value.show()
}

#[cfg(test)]
mod tests;

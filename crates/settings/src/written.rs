//! What was written, with its place: the same shape from an ini file and from TOML.

use crate::diagnostic::Diagnostic;
use crate::source::Place;
use std::path::PathBuf;

pub(crate) mod connection_string;
pub(crate) mod ini;
pub(crate) mod toml;

/// Longest line of a file, in bytes.
pub const MAX_LINE_BYTES: usize = 128 << 10;
/// How deep `%include` may nest, as in PgBouncer.
pub const MAX_INCLUDE_DEPTH: usize = 10;
/// Most files of one configuration.
pub const MAX_FILES: usize = 100;

/// Most values of one configuration.
pub const MAX_ENTRIES: usize = 200_000;

/// The two kinds of file. They differ in a few defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `pgbouncer.ini`; PgBouncer's defaults.
    Ini,
    /// TOML; our defaults.
    Toml,
}

/// One value that was written.
#[derive(Clone)]
pub struct Entry {
    /// Name of the setting.
    pub key: String,
    /// Its value as text; the elements of a TOML array are joined with commas.
    pub value: String,
    /// Whether the value was a TOML array.
    pub is_array: bool,
    /// Where the name stands.
    pub key_place: Place,
    /// Where the value stands.
    pub place: Place,
}

/// Shows no value: it may be a secret.
impl std::fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Entry").field("key", &self.key).finish_non_exhaustive()
    }
}

/// What was written of one database, user, lane or peer.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub place: Place,
    /// Its settings.
    pub entries: Vec<Entry>,
}

/// Everything that was written, in order.
#[derive(Debug)]
pub struct Written {
    /// Kind of the first file.
    pub dialect: Dialect,
    /// The header of the first `[pgbouncer]`, or the start of the file.
    pub general_place: Place,
    /// Section `[pgbouncer]`.
    pub general: Vec<Entry>,
    /// Section `[databases]`.
    pub databases: Vec<Group>,
    /// Section `[users]`.
    pub users: Vec<Group>,
    /// Section `[lanes]`.
    pub lanes: Vec<Group>,
    /// Section `[peers]`.
    pub peers: Vec<Group>,
    /// The files read, the first one first.
    pub files: Vec<PathBuf>,
    /// Values so far; an empty group counts as one.
    count: usize,
}

impl Written {
    pub(crate) fn new(dialect: Dialect, general_place: Place) -> Self {
        Self {
            dialect,
            general_place,
            general: Vec::new(),
            databases: Vec::new(),
            users: Vec::new(),
            lanes: Vec::new(),
            peers: Vec::new(),
            files: Vec::new(),
            count: 0,
        }
    }

    /// Adds to `[pgbouncer]`.
    pub(crate) fn push_general(&mut self, entry: Entry) -> Result<(), TooMany> {
        self.count_more(1)?;
        self.general.push(entry);
        Ok(())
    }

    /// Adds a database, user, lane or peer.
    pub(crate) fn push_group(&mut self, section: Section, group: Group) -> Result<(), TooMany> {
        self.count_more(group.entries.len().max(1))?;
        match section {
            Section::General => self.general.extend(group.entries),
            Section::Databases => self.databases.push(group),
            Section::Users => self.users.push(group),
            Section::Lanes => self.lanes.push(group),
            Section::Peers => self.peers.push(group),
        }
        Ok(())
    }

    fn count_more(&mut self, count: usize) -> Result<(), TooMany> {
        self.count += count;
        if self.count > MAX_ENTRIES { Err(TooMany) } else { Ok(()) }
    }
}

/// There are more than [`MAX_ENTRIES`] values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooMany;

impl TooMany {
    pub(crate) fn at(self, place: &Place) -> Diagnostic {
        Diagnostic::error("too-many", format!("there are more than {MAX_ENTRIES} values")).at(place)
    }
}

/// The sections of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    General,
    Databases,
    Users,
    Lanes,
    Peers,
}

impl Section {
    /// Names that files may use; the first two are the same section.
    pub(crate) const NAMES: [&str; 6] = ["pgbouncer", "pooler", "databases", "users", "lanes", "peers"];

    pub(crate) fn named(name: &str, dialect: Dialect) -> Option<Self> {
        match name {
            "pgbouncer" => Some(Self::General),
            "pooler" if dialect == Dialect::Toml => Some(Self::General),
            "databases" => Some(Self::Databases),
            "users" => Some(Self::Users),
            "lanes" => Some(Self::Lanes),
            "peers" => Some(Self::Peers),
            _ => None,
        }
    }
}

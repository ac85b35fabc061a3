//! The reference of settings as a page of Markdown.

use super::table::{self, Kind, Setting, Status};
use crate::units::show_duration;
use std::fmt::Write as _;

const INTRODUCTION: &str = "# Settings of the pooler

Every setting that an ini file (`pgbouncer.ini`) or TOML (`[pooler]` or `[pgbouncer]`, `[databases.NAME]`, `[users.NAME]`, `[lanes.NAME]`) may hold.
This page is made from the table that reads them.

- Durations are seconds (fractions too), or a number with `us`, `ms`, `s`, `min`, `h` or `d`. Sizes are bytes, or a number with `kB`, `MB` or `GB`.
  Switches are `1 0 yes no on off true false`.
- *Default* is the one in an ini file, as in PgBouncer. Where TOML has another, both are given.
- *State*: **built**; **own** is built and not known to PgBouncer; **not built** is refused by name, but for the values given, which ask for nothing;
  **no effect** is accepted, and `--check` says why it changes nothing.
- *Change*: by RELOAD, or only by a restart.
- An unknown name is refused with the nearest known one. Of two values of one setting the later counts, and `--check` says so.
";

/// The whole page.
#[must_use]
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut general: Vec<_> = table::general().collect();
    general.sort_by_key(|setting| setting.name);
    section(&mut page, "[pgbouncer]", general.into_iter());
    section(&mut page, "[databases]", table::DATABASES.iter());
    section(&mut page, "[users]", table::USERS.iter());
    section(&mut page, "[lanes]", table::LANES.iter());
    page.push_str("\n## [peers]\n\nNot built; refused.\n");
    page
}

fn section<T: 'static>(page: &mut String, title: &str, settings: impl Iterator<Item = &'static Setting<T>>) {
    let head = "| Setting | Values | Default | Meaning | State | Change |\n|---|---|---|---|---|---|\n";
    // Writing to a String cannot fail.
    let _ = write!(page, "\n## {title}\n\n{head}");
    for setting in settings {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} | {} |",
            setting.name,
            values(&setting.kind),
            default(setting),
            setting.meaning,
            state(setting),
            if setting.needs_restart { "restart" } else { "RELOAD" },
        );
    }
}

fn values(kind: &Kind) -> String {
    match *kind {
        Kind::Duration { minimum } if minimum.is_zero() => "duration".into(),
        Kind::Duration { minimum } => format!("duration from {} s", show_duration(minimum)),
        Kind::Bytes { minimum, maximum } => format!("size, {minimum} to {maximum}"),
        Kind::Integer { minimum, maximum } => format!("number, {minimum} to {maximum}"),
        Kind::Boolean => "switch".into(),
        Kind::FileMode => "octal mode".into(),
        Kind::Choice { built, .. } => {
            built.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", ")
        }
        Kind::Text => "text".into(),
        Kind::List => "list".into(),
        Kind::Path => "path".into(),
        Kind::Address => "address:port".into(),
    }
}

fn default<T>(setting: &Setting<T>) -> String {
    let shown = |default: &str| if default.is_empty() { "none".to_owned() } else { format!("`{default}`") };
    match setting.default_toml {
        None => shown(setting.default),
        Some(default_toml) => format!("{}; TOML: {}", shown(setting.default), shown(default_toml)),
    }
}

fn state<T>(setting: &Setting<T>) -> String {
    match &setting.status {
        _ if setting.name == "conffile" => "not built".into(),
        Status::Built(_) | Status::Joint if setting.is_own => "own".into(),
        Status::Built(_) | Status::Joint => match setting.kind {
            Kind::Choice { not_built, .. } if !not_built.is_empty() => {
                let list =
                    not_built.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", ");
                format!("built; not {list}")
            }
            _ => "built".into(),
        },
        Status::NotBuilt([] | [""]) => "not built".into(),
        Status::NotBuilt(accepted) => {
            let list = accepted.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
            format!("not built, only {list}")
        }
        Status::NoEffect(reason) => format!("no effect: {reason}"),
    }
}

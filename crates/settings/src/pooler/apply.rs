//! Puts what was written into what runs, by the table.

use super::nearest;
use super::table::{self, Kind, Setting, Status};
use super::value::{self, Refusal};
use crate::diagnostic::{Diagnostic, Report, quoted};
use crate::written::{Dialect, Entry};
use std::collections::BTreeMap;

/// The entry that counts, by setting.
pub(super) type Places<'a> = BTreeMap<&'static str, &'a Entry>;

/// Where the entries stand.
#[derive(Clone, Copy)]
pub(super) struct Scope {
    /// `[pgbouncer]`, `[databases]`, `[users]` or `[lanes]`.
    pub(super) section: &'static str,
    /// Kind of file.
    pub(super) dialect: Dialect,
}

/// Puts each of `entries` into `target`; refuses what is unknown, bad or not built. The last of several
/// values of one setting counts.
pub(super) fn apply<'a, T: 'static>(
    settings: impl Iterator<Item = &'static Setting<T>> + Clone,
    entries: &'a [Entry],
    scope: Scope,
    target: &mut T,
    report: &mut Report,
) -> Places<'a> {
    let mut places = Places::new();
    for entry in entries {
        let Some(setting) = settings.clone().find(|setting| setting.name == entry.key) else {
            report.add(unknown(entry, settings.clone().map(|setting| setting.name), scope, report.is_full()));
            continue;
        };
        if let Some(earlier) = places.insert(setting.name, entry) {
            let message = format!("`{}` is written twice; the later value counts", setting.name);
            report.add(Diagnostic::note("duplicate", message).at(&earlier.key_place));
        }
        if entry.is_array && setting.kind != Kind::List {
            report.add(bad_value(setting.name, entry, "one value is expected, not an array", scope.dialect));
            continue;
        }
        set(setting, entry, scope, target, report);
    }
    places
}

/// Gives every built setting its default.
pub(super) fn apply_defaults<T: 'static>(
    settings: impl Iterator<Item = &'static Setting<T>>,
    dialect: Dialect,
    target: &mut T,
    report: &mut Report,
) {
    for setting in settings {
        if let Status::Built(binding) = &setting.status
            && let Err(refusal) = (binding.read)(target, setting.default_in(dialect), &setting.kind)
        {
            let message = format!("the default of `{}` does not hold: {refusal:?}", setting.name);
            report.add(Diagnostic::error("bad-value", message));
        }
    }
}

fn set<T>(setting: &Setting<T>, entry: &Entry, scope: Scope, target: &mut T, report: &mut Report) {
    match &setting.status {
        Status::Built(binding) => {
            if let Err(refusal) = (binding.read)(target, &entry.value, &setting.kind) {
                report.add(refused(setting.name, entry, refusal, scope.dialect));
            }
        }
        Status::Joint => {}
        Status::NotBuilt(accepted) => {
            if !accepted.iter().any(|accepted| value::same(accepted, &entry.value, &setting.kind)) {
                report.add(not_built(setting.name, entry, accepted));
            }
        }
        Status::NoEffect(reason) => {
            let message = format!("`{}` has no effect here: {reason}", setting.name);
            report.add(Diagnostic::note("no-effect", message).at(&entry.key_place));
        }
    }
}

/// The value of `entry` is refused.
pub(super) fn refused(name: &str, entry: &Entry, refusal: Refusal, dialect: Dialect) -> Diagnostic {
    match refusal {
        Refusal::Bad(reason) => bad_value(name, entry, &reason, dialect),
        Refusal::NotBuilt(built) => {
            let message = format!("{} of `{name}` is not built yet", cited(entry));
            Diagnostic::error("not-built", message).at(&entry.place).help(format!("built so far: {built}"))
        }
    }
}

/// The value of `entry` is none of this setting.
pub(super) fn bad_value(name: &str, entry: &Entry, reason: &str, dialect: Dialect) -> Diagnostic {
    let message = format!("{} is no value of `{name}`: {reason}", cited(entry));
    let diagnostic = Diagnostic::error("bad-value", message).at(&entry.place);
    if dialect == Dialect::Ini && entry.value.contains([';', '#']) {
        return diagnostic.help("a comment needs a line of its own; behind a value it is part of the value");
    }
    diagnostic
}

fn not_built(name: &str, entry: &Entry, accepted: &[&str]) -> Diagnostic {
    let diagnostic =
        Diagnostic::error("not-built", format!("`{name}` is not built yet")).at(&entry.key_place);
    match accepted {
        [] | [""] => diagnostic.help("leave it out"),
        [first, ..] => {
            diagnostic.help(format!("leave it out, or write `{name} = {first}`, which is how it runs"))
        }
    }
}

fn unknown(
    entry: &Entry,
    names: impl Iterator<Item = &'static str>,
    scope: Scope,
    is_counted_only: bool,
) -> Diagnostic {
    let message = format!("there is no setting {} in [{}]", quoted(&entry.key), scope.section);
    let diagnostic = Diagnostic::error("unknown-setting", message).at(&entry.key_place);
    if is_counted_only {
        return diagnostic;
    }
    let key = entry.key.as_str();
    let elsewhere = [
        ("pgbouncer", table::general().any(|setting| setting.name == key)),
        ("databases", table::DATABASES.iter().any(|setting| setting.name == key)),
        ("users", table::USERS.iter().any(|setting| setting.name == key)),
        ("lanes", table::LANES.iter().any(|setting| setting.name == key)),
    ];
    if let Some((section, _)) = elsewhere.iter().find(|(_, found)| *found) {
        return diagnostic.help(format!("it is a setting of [{section}]"));
    }
    match nearest(key, names) {
        Some(nearest) => diagnostic.help(format!("did you mean `{nearest}`?")),
        None => diagnostic,
    }
}

/// The value, unless it is a secret.
fn cited(entry: &Entry) -> String {
    if entry.key.to_ascii_lowercase().contains("password") {
        "this value".to_owned()
    } else {
        quoted(&entry.value)
    }
}

//! What must hold between settings.

use super::apply::Places;
use super::build::WrittenUser;
use super::databases::WrittenDatabase;
use super::model::{AuthType, General};
use crate::diagnostic::{Diagnostic, Report, quoted};
use crate::source::{Place, Sources};
use crate::units::show_duration;
use crate::written::{Dialect, Written};
use std::collections::BTreeMap;
use std::time::Duration;

mod budget;
mod tls;

type Databases<'a> = BTreeMap<String, WrittenDatabase<'a>>;
type Users<'a> = BTreeMap<String, WrittenUser<'a>>;

pub(super) fn validate(
    general: &General,
    places: &Places<'_>,
    databases: &Databases<'_>,
    users: &Users<'_>,
    written: &Written,
    sources: &dyn Sources,
    report: &mut Report,
) {
    patience(general, places, databases, users, written, report);
    sizes(general, places, databases, report);
    user_minima(general, databases, users, report);
    budget::check(general, places, databases, report);
    logins(general, places, databases, written, sources, report);
    tls::check(general, places, sources, report);
    if general.listen.is_empty() && general.unix_socket_dir.is_none() {
        let place = places.get("unix_socket_dir").map_or(&written.general_place, |entry| &entry.place);
        let diagnostic = Diagnostic::error("nowhere-to-listen", "there is nothing to listen on").at(place);
        report.add(diagnostic.help("write `listen_addr`, `unix_socket_dir` or both"));
    }
    if databases.is_empty() {
        let diagnostic = Diagnostic::warning("no-database", "there is no database in [databases]");
        report.add(diagnostic.at(&written.general_place).help("write a line such as `* = host=127.0.0.1`"));
    }
}

/// A wait must end before its caller gives up.
fn patience(
    general: &General,
    places: &Places<'_>,
    databases: &Databases<'_>,
    users: &Users<'_>,
    written: &Written,
    report: &mut Report,
) {
    let Some(patience) = general.client_patience else {
        if written.dialect == Dialect::Ini && !places.contains_key("query_wait_timeout") {
            let message = "`query_wait_timeout` stays at PgBouncer's 120 s, longer than most callers wait; waiting clients are watched, so that those who have gone cost no server";
            let diagnostic = Diagnostic::note("patience-unknown", message).at(&written.general_place);
            report.add(
                diagnostic.help(
                    "write `client_patience`, how long callers wait, and `query_wait_timeout` below it",
                ),
            );
        }
        return;
    };
    let patience_place = places.get("client_patience").map(|entry| &entry.place);
    let mut check = |timeout: Duration, place: Option<&Place>, what: &str| {
        if timeout < patience && timeout != Duration::ZERO {
            return;
        }
        let shown = if timeout == Duration::ZERO {
            "for ever (0)".into()
        } else {
            format!("{} s", show_duration(timeout))
        };
        let patience = show_duration(patience);
        let message = format!(
            "{what} is {shown}, but callers wait only {patience} s (`client_patience`): servers would go to requests that nobody waits for any more"
        );
        let diagnostic = Diagnostic::error("patience", message);
        report.add(
            diagnostic
                .at_any(place.or(patience_place))
                .help(format!("write a `query_wait_timeout` below {patience}")),
        );
    };
    let general_place = places.get("query_wait_timeout").map(|entry| &entry.place);
    let what =
        if general_place.is_some() { "`query_wait_timeout`" } else { "the default of `query_wait_timeout`" };
    check(general.query_wait_timeout, general_place, what);
    let of_databases =
        databases.values().map(|written| (written.database.query_wait_timeout, &written.places));
    let of_users = users.values().map(|written| (written.settings.query_wait_timeout, &written.places));
    for (timeout, places) in of_databases.chain(of_users) {
        if let Some(timeout) = timeout {
            check(
                timeout,
                places.get("query_wait_timeout").map(|entry| &entry.place),
                "`query_wait_timeout`",
            );
        }
    }
}

/// Minima stay within maxima.
fn sizes(general: &General, places: &Places<'_>, databases: &Databases<'_>, report: &mut Report) {
    let mut at_most = |least: (&str, usize), most: (&str, usize), place: Option<&Place>| {
        if least.1 > most.1 {
            let message = format!("`{}` is {}, above `{}`, which is {}", least.0, least.1, most.0, most.1);
            let diagnostic = Diagnostic::error("minimum-above-maximum", message);
            report.add(diagnostic.at_any(place));
        }
    };
    let limit = |limit: usize| if limit == 0 { usize::MAX } else { limit };
    let minimum = ("min_pool_size", general.min_pool_size);
    let place = ["min_pool_size", "default_pool_size", "max_db_connections", "max_user_connections"]
        .iter()
        .find_map(|name| places.get(name))
        .map(|entry| &entry.place);
    at_most(minimum, ("default_pool_size", general.default_pool_size), place);
    at_most(minimum, ("max_db_connections", limit(general.max_db_connections)), place);
    at_most(minimum, ("max_user_connections", limit(general.max_user_connections)), place);
    for written in databases.values() {
        let database = &written.database;
        let place = ["min_pool_size", "pool_size", "max_db_connections"]
            .iter()
            .find_map(|name| written.places.get(name))
            .map(|entry| &entry.place);
        if place.is_none() {
            continue;
        }
        let minimum = ("min_pool_size", database.min_pool_size.unwrap_or(general.min_pool_size));
        at_most(minimum, ("pool_size", database.pool_size.unwrap_or(general.default_pool_size)), place);
        let most = database.max_db_connections.unwrap_or(general.max_db_connections);
        at_most(minimum, ("max_db_connections", limit(most)), place);
    }
}

/// A user's limit below the minimum of its pools: fewer servers are kept open, and someone may wonder.
fn user_minima(general: &General, databases: &Databases<'_>, users: &Users<'_>, report: &mut Report) {
    let of_databases = databases.values().filter_map(|written| written.database.min_pool_size);
    let greatest = of_databases.chain([general.min_pool_size]).max().unwrap_or_default();
    for (name, user) in users {
        let limits = [
            ("pool_size", user.settings.pool_size),
            ("max_user_connections", user.settings.max_user_connections.filter(|limit| *limit > 0)),
        ];
        for (setting, limit) in limits {
            let Some(limit) = limit.filter(|limit| *limit < greatest) else { continue };
            let message = format!(
                "`{setting}` of the user {} is {limit}, below a `min_pool_size` of {greatest}; no more than {limit} are kept open",
                quoted(name)
            );
            let place = user.places.get(setting).map(|entry| &entry.place);
            report.add(Diagnostic::warning("minimum-above-maximum", message).at_any(place));
        }
    }
}

/// Somebody can log in, and secrets are kept.
fn logins(
    general: &General,
    places: &Places<'_>,
    databases: &Databases<'_>,
    written: &Written,
    sources: &dyn Sources,
    report: &mut Report,
) {
    if general.auth_type == AuthType::Any {
        for database in databases.values().filter(|written| written.database.user.is_none()) {
            let message = format!(
                "with `auth_type = any` the database {} needs a `user`; without one nobody can log in to it",
                quoted(&database.group.name)
            );
            report.add(Diagnostic::warning("nobody-can-log-in", message).at(&database.group.place));
        }
    } else if general.auth_file.is_none() {
        let place = places
            .get("auth_file")
            .or_else(|| places.get("auth_type"))
            .map_or(&written.general_place, |entry| &entry.place);
        let message = "without `auth_file` no user is known, so nobody can log in";
        report.add(Diagnostic::warning("nobody-can-log-in", message).at(place));
    }
    let with_password = databases.values().filter_map(|written| written.places.get("password"));
    let mut noted = Vec::new();
    for entry in with_password {
        let file = entry.place.file();
        if !noted.contains(&file) && sources.readable_by_others(file) == Some(true) {
            let message = "the file holds a password and every user of this machine may read it";
            let diagnostic = Diagnostic::warning("secret-file", message).at(&entry.key_place);
            report.add(diagnostic.help("take the right to read it from others"));
        }
        noted.push(file);
    }
}

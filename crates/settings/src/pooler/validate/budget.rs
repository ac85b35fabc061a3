//! `server_budget`: what is declared must fit into it, and somebody must be able to ask.

use super::{Databases, Places};
use crate::diagnostic::{Diagnostic, Report};
use crate::pooler::model::{General, ServerAddress, ServerBudget};
use std::collections::HashMap;

/// What the lines of one server declare.
#[derive(Default)]
struct Declared {
    /// Minima of pools that are known beforehand.
    minima: usize,
    /// Sizes of those, and of one pool for each other line.
    sizes: usize,
}

pub(super) fn check(general: &General, places: &Places<'_>, databases: &Databases<'_>, report: &mut Report) {
    let budget = &general.budget;
    if budget.size == ServerBudget::Off {
        return;
    }
    let place = places.get("server_budget").map(|entry| &entry.place);
    if budget.user.is_empty() {
        let message = "`server_budget` needs a `budget_user`, which asks the server and holds the leases";
        let help = "write `budget_user`, and its password in `auth_file`";
        report.add(Diagnostic::error("budget-user", message).at_any(place).help(help));
    }
    let ServerBudget::Connections(size) = budget.size else { return };
    let mut declared: HashMap<&ServerAddress, Declared> = HashMap::new();
    for written in databases.values() {
        let database = &written.database;
        let of_server = declared.entry(&database.address).or_default();
        of_server.sizes += database.pool_size.unwrap_or(general.default_pool_size);
        if database.user.is_some() && written.group.name != "*" {
            of_server.minima += database.min_pool_size.unwrap_or(general.min_pool_size);
        }
    }
    let minima = declared.values().map(|of_server| of_server.minima).max().unwrap_or_default();
    let least = minima + budget.reserved.max(1);
    if least > size {
        let message = format!(
            "a `server_budget` of {size} is less than what is kept open: {minima} of `min_pool_size` and {} of `budget_reserved`",
            budget.reserved
        );
        report.add(Diagnostic::error("budget-too-small", message).at_any(place));
        return;
    }
    let sizes = declared.values().map(|of_server| of_server.sizes).max().unwrap_or_default();
    let places_of_pools = size - budget.reserved;
    if sizes > places_of_pools {
        let message = format!(
            "the pools of one server may want {sizes} connections, and `server_budget` leaves them {places_of_pools}: they share"
        );
        report.add(Diagnostic::warning("budget-overcommitted", message).at_any(place));
    }
}

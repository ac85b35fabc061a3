//! The database's grants, made from the declarations.

use std::fmt::Write as _;

use super::{TABLES, Table, Verbs, Writer};

/// Statement, lock and idle limits of the roles that log in: a forgotten transaction holds nobody up for long.
const LIMITS: &[(&str, &str)] =
    &[("statement_timeout", "30s"), ("lock_timeout", "2s"), ("idle_in_transaction_session_timeout", "30s")];

/// Functions, and who may call them.
const FUNCTIONS: &[(&str, &[Writer])] = &[
    ("ledger_least_gap()", &[Writer::Api, Writer::Worker]),
    ("ledger_extension()", &[Writer::Api, Writer::Worker]),
    ("slice_free(uuid, smallint, timestamptz)", &[Writer::Api, Writer::Worker]),
    ("beat_ledger()", &[Writer::Api]),
    (
        "admit_contract(uuid, integer, uuid, text, uuid, uuid, bigint, bigint, timestamptz, timestamptz, \
         timestamptz, integer, integer, integer, integer)",
        &[Writer::Api],
    ),
    (
        "bring_in_contract(uuid, integer, uuid, text, uuid, uuid, bigint, timestamptz, timestamptz, timestamptz, \
         integer, timestamptz)",
        &[Writer::Api],
    ),
    ("offline_allowance(bigint)", &[Writer::Worker]),
    ("contract_usage(uuid, bigint)", &[Writer::Worker]),
    ("spend_free(uuid, smallint, bigint, timestamptz)", &[Writer::Worker]),
    ("spend_somewhere(uuid, uuid, smallint, bigint, timestamptz)", &[Writer::Worker]),
    ("charge_account(uuid, uuid, smallint, bigint, timestamptz)", &[Writer::Worker]),
    ("cover_debts(timestamptz, integer)", &[Writer::Worker]),
    ("changed_clients(integer, xid8, integer)", &[Writer::Api, Writer::Relay]),
    ("refused_clients(integer, timestamptz, integer)", &[Writer::Api, Writer::Relay]),
    ("settle_contracts(timestamptz, integer)", &[Writer::Worker]),
    ("settle_late(integer)", &[Writer::Worker]),
    ("task_partitions(integer, integer, integer)", &[Writer::Worker]),
    ("promote_tasks(integer, smallint[], integer, integer)", &[Writer::Worker]),
];

/// What brings the grants to what the declarations say, whatever they were. Running it again changes nothing.
pub(crate) fn statements() -> String {
    let mut sql = String::from("REVOKE CREATE ON SCHEMA public FROM PUBLIC;\n");
    for role in Writer::AT_RUN_TIME.map(Writer::database_role) {
        for (name, value) in LIMITS {
            let _ = writeln!(sql, "ALTER ROLE {role} SET {name} = '{value}';");
        }
        let _ = writeln!(sql, "GRANT USAGE ON SCHEMA public TO {role};");
    }
    for table in TABLES {
        let name = table.name;
        let _ = writeln!(sql, "REVOKE ALL ON TABLE {name} FROM PUBLIC;");
        for role in Writer::AT_RUN_TIME {
            let _ = writeln!(sql, "REVOKE ALL ON TABLE {name} FROM {};", role.database_role());
            let privileges = privileges(table, role);
            if !privileges.is_empty() {
                let list = privileges.join(", ");
                let _ = writeln!(sql, "GRANT {list} ON TABLE {name} TO {};", role.database_role());
            }
        }
    }
    for (function, callers) in FUNCTIONS {
        let _ = writeln!(sql, "REVOKE ALL ON FUNCTION {function} FROM PUBLIC;");
        for caller in *callers {
            let _ = writeln!(sql, "GRANT EXECUTE ON FUNCTION {function} TO {};", caller.database_role());
        }
    }
    sql
}

/// What a role may do with a table.
pub(crate) fn privileges(table: &Table, role: Writer) -> Vec<&'static str> {
    let mut privileges = Vec::new();
    if table.writer == role {
        privileges.extend(match table.verbs {
            Verbs::Insert => &["INSERT"][..],
            Verbs::InsertUpdate => &["INSERT", "UPDATE"],
            Verbs::All => &["DELETE", "INSERT", "UPDATE"],
        });
    }
    if role == Writer::Worker && table.is_drained_by_worker() && !privileges.contains(&"DELETE") {
        privileges.insert(0, "DELETE");
    }
    if table.writer == role || role == Writer::Worker || table.readers.contains(&role) {
        privileges.push("SELECT");
    }
    privileges.sort_unstable();
    privileges
}

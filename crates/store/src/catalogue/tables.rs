//! The declarations.

use super::Life::{Bounded, Forever, Partitions, Queue, Sweep};
use super::Verbs::{All, Insert, InsertUpdate};
use super::Writer::{Api, Migration, Relay, Worker};
use super::{Life, Table, Verbs, Writer};

use crate::tasks::KEEP_DONE_DAYS;

const DAY_S: u64 = 86_400;

/// Every table of the database.
pub const TABLES: &[Table] = &[
    table("network", Api, Insert, &[Relay], Bounded { by: "networks of one installation" }, "network"),
    table("account", Api, InsertUpdate, &[], Forever { because: "an account is a customer" }, "account"),
    table("account_session", Api, All, &[], Sweep { column: "expires_at", keep_s: DAY_S }, "sign-in"),
    table(
        "client",
        Api,
        InsertUpdate,
        &[Relay],
        Forever { because: "an identity is used for years" },
        "client",
    ),
    table(
        "join_code",
        Api,
        InsertUpdate,
        &[],
        Sweep { column: "expires_at", keep_s: 30 * DAY_S },
        "invitation",
    ),
    table(
        "revocation",
        Api,
        Insert,
        &[Relay],
        Forever { because: "what was revoked stays so" },
        "revoked client",
    ),
    table(
        "change_log",
        Api,
        Insert,
        &[Relay],
        Sweep { column: "changed_at", keep_s: 7 * DAY_S },
        "client disabled, enabled or revoked; document signed",
    ),
    table(
        "api_beat",
        Api,
        InsertUpdate,
        &[],
        Sweep { column: "beat_at", keep_s: 7 * DAY_S },
        "start of an api",
    ),
    table("trust_document", Api, InsertUpdate, &[Relay], Bounded { by: "two for each network" }, "network"),
    table("relay_beat", Relay, All, &[Api], Sweep { column: "beat_at", keep_s: 7 * DAY_S }, "relay"),
    table(
        "connection",
        Relay,
        InsertUpdate,
        &[Api],
        Sweep { column: "disconnected_at", keep_s: 7 * DAY_S },
        "connection",
    ),
    table(
        "relay_word",
        Relay,
        All,
        &[],
        Sweep { column: "told_at", keep_s: DAY_S },
        "two relays of which one was late",
    ),
    table(
        "relay_verdict",
        Worker,
        InsertUpdate,
        &[Api, Relay],
        Sweep { column: "judged_at", keep_s: 8 * DAY_S },
        "relay that was ever late",
    ),
    table("worker_beat", Worker, InsertUpdate, &[Api], Sweep { column: "beat_at", keep_s: DAY_S }, "worker"),
    table(
        "usage",
        Relay,
        Insert,
        &[Api],
        Sweep { column: "recorded_at", keep_s: 35 * DAY_S },
        "report of a contract",
    ),
    table("byte_grant", Api, Insert, &[], Forever { because: "a grant is a payment" }, "grant"),
    table("grant_slice", Api, InsertUpdate, &[], Forever { because: "at most 16 for each grant" }, "grant"),
    table(
        "hold",
        Api,
        InsertUpdate,
        &[],
        Sweep { column: "minute", keep_s: DAY_S },
        "grant, slice and minute",
    ),
    table("contract", Api, Insert, &[], Sweep { column: "created_at", keep_s: 35 * DAY_S }, "contract"),
    table("open_contract", Api, InsertUpdate, &[], Queue, "open contract"),
    table(
        "contract_outcome",
        Worker,
        InsertUpdate,
        &[Api],
        Sweep { column: "settled_at", keep_s: 35 * DAY_S },
        "contract",
    ),
    table(
        "grant_balance",
        Worker,
        InsertUpdate,
        &[Api],
        Forever { because: "at most 16 for each grant" },
        "grant",
    ),
    table(
        "hold_release",
        Worker,
        InsertUpdate,
        &[Api],
        Sweep { column: "minute", keep_s: DAY_S },
        "grant, slice and minute",
    ),
    table(
        "account_debt",
        Worker,
        InsertUpdate,
        &[Api],
        Forever { because: "at most one for each account" },
        "account that used more than it was given",
    ),
    table("ledger_pulse", Api, InsertUpdate, &[], Bounded { by: "one row" }, "database"),
    table("ledger_gap", Api, Insert, &[], Sweep { column: "until_at", keep_s: 2 * DAY_S }, "outage"),
    table("proxy_account", Api, InsertUpdate, &[], Forever { because: "a login is a customer's" }, "login"),
    table(
        "exit_record",
        Api,
        Insert,
        &[],
        Sweep { column: "closed_at", keep_s: 14 * DAY_S },
        "stream of the hosted proxy",
    ),
    table(
        "pool_generation",
        Worker,
        All,
        &[Api],
        Bounded { by: "generations that are kept, for each network" },
        "generation",
    ),
    table(
        "pool_blob",
        Worker,
        All,
        &[Api],
        Bounded { by: "pools of the generations that are kept" },
        "pool of a generation",
    ),
    table("worker_cursor", Worker, InsertUpdate, &[], Bounded { by: "loops of the worker" }, "loop"),
    table("task_future", Worker, InsertUpdate, &[], Queue, "task that is due later"),
    table("task_ready", Worker, InsertUpdate, &[], Queue, "task that is due, or recurring job"),
    table(
        "task_done",
        Worker,
        Insert,
        &[],
        Partitions { keep_s: KEEP_DONE_DAYS as u64 * DAY_S },
        "task that was done",
    ),
    table(
        "refinery_schema_history",
        Migration,
        Insert,
        &[Api, Relay],
        Bounded { by: "migrations" },
        "migration",
    ),
];

const fn table(
    name: &'static str,
    writer: Writer,
    verbs: Verbs,
    readers: &'static [Writer],
    life: Life,
    grows_with: &'static str,
) -> Table {
    Table { name, writer, verbs, readers, life, grows_with }
}

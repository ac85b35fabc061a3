//! What clients ask. `%k` is the client's own number.

use crate::step::NUMBER;

/// The first thing that a client asks: tables of its own.
pub(crate) fn tables() -> String {
    let sql = "create table t%k (id int primary key, name text, amount numeric); \
               insert into t%k select i, 'row ' || i, i * 1.5 from generate_series(1, 5) i; \
               create table v%k (line text)";
    debug_assert!(sql.contains(NUMBER));
    sql.to_owned()
}

/// Start-up parameters, reported or not.
pub(crate) const START_PARAMETERS: &[(&str, &str)] = &[
    ("application_name", "at start"),
    ("DateStyle", "SQL, DMY"),
    ("TimeZone", "Europe/Berlin"),
    ("client_encoding", "LATIN1"),
    ("extra_float_digits", "0"),
    ("search_path", "public, pg_catalog"),
    ("statement_timeout", "55s"),
    ("options", "-c work_mem=6MB -c search_path=public,\\ \"$user\" --lock-timeout=9s"),
    ("options", "-c geqo=off"),
];

pub(crate) const READS: &[&str] = &[
    "select 1",
    "select 'caf\u{e9}', null, 2.50, true",
    "select * from t%k order by id",
    "select id, name from t%k where id > 2 order by id",
    "select count(*), sum(amount) from t%k",
    "select i, repeat('x', 40) from generate_series(1, 300) i",
    "select repeat('y', 20000)",
    "select date '2024-02-03', timestamptz '2024-02-03 04:05:06+00', interval '1 day 02:00', '\\x01ff'::bytea",
    "select 1.0::float8 / 3, '{1,2,NULL}'::int[]",
    "select pg_sleep(0.003)",
    "values (1, 'a'), (2, 'b')",
    "explain (costs off) select * from t%k",
    "select",
    "table t%k",
];

pub(crate) const SEVERAL: &[&str] = &[
    "select 1; select 2",
    "; ;; select 1;;",
    "select 1; select 1/0; select 3",
    "insert into t%k values (60, 'several', 1); select count(*) from t%k",
    "insert into t%k values (61, 'gone', 1); select 1/0",
    "select 1; select from where",
    "begin; select 1; commit; select 2",
    "begin; insert into t%k values (62, 'kept', 1); commit; select 1/0",
    "select 1; begin; select 2",
    "select 1; rollback; select 2",
    "begin; select 1/0; rollback",
    "commit; begin; savepoint a; select 3",
];

pub(crate) const NOTHING: &[&str] = &["", ";", " -- a comment", "/* */"];

pub(crate) const ERRORS: &[&str] = &[
    "select 1/0",
    "selec 1",
    "select * from missing_table",
    "select missing_column from t%k",
    "insert into t%k values (1, 'twice', 0)",
    "select 'x'::int",
    "select i, 10 / (3 - i) from generate_series(1, 5) i",
    "do $$ begin raise exception 'own' using errcode = 'ZZ001', detail = 'more', hint = 'less'; end $$",
    "vacuum full missing_table",
    "select lo_open(1, 1)",
];

pub(crate) const WRITES: &[&str] = &[
    "insert into t%k values (10, 'ten', 10) on conflict do nothing",
    "insert into t%k select max(id) + 1, 'next', 0 from t%k returning id, name",
    "update t%k set name = name || '!' where id <= 3 returning *",
    "delete from t%k where id = 4",
    "with moved as (delete from t%k where id = 5 returning *) select * from moved",
    "lock table t%k",
    "select * from t%k where id = 2 for update",
    "truncate t%k",
];

pub(crate) const NOTICES: &[&str] = &[
    "do $$ begin raise notice 'first'; raise warning 'second' using hint = 'h'; end $$",
    "do $$ begin raise info 'told'; perform 1/0; end $$",
    "drop table if exists missing_table",
    "create table if not exists t%k ()",
    "do $$ begin raise debug 'not told'; end $$",
];

pub(crate) const TRANSACTIONS: &[&str] = &[
    "begin",
    "begin",
    "begin isolation level serializable read only",
    "start transaction",
    "commit",
    "commit",
    "end",
    "rollback",
    "rollback",
    "abort",
    "commit and chain",
    "rollback and chain",
    "savepoint a",
    "savepoint b",
    "release a",
    "rollback to a",
    "rollback to savepoint b",
    "set transaction read only",
    "prepare transaction 'x%k'",
    "set constraints all deferred",
];

/// What needs no transaction of its own.
pub(crate) const TRANSACTION_ENDS: &[&str] = &["commit", "rollback", "savepoint a", "end"];

/// Parameters that the server reports.
pub(crate) const REPORTED: &[&str] = &[
    "set datestyle = 'German'",
    "set datestyle to sql, dmy",
    "set timezone = 'Asia/Tokyo'",
    "set time zone -3.5",
    "set application_name = 'client'",
    "set application_name to 'it''s'",
    "set client_encoding = 'LATIN1'",
    "set client_encoding to 'UTF8'",
    "set intervalstyle = iso_8601",
    "set standard_conforming_strings = off",
    "set local datestyle = 'Postgres'",
    "set local timezone = 'UTC'",
    "reset datestyle",
    "reset timezone",
    "reset application_name",
    "reset client_encoding",
    "set timezone = 'Nowhere/Land'",
    "show search_path",
    "show statement_timeout",
    "show lock_timeout",
    "show work_mem",
    "show geqo",
    "show extra_float_digits",
    "show datestyle",
    "show timezone",
    "show application_name",
    "show client_encoding",
    "select set_config('intervalstyle', 'sql_standard', true), current_setting('intervalstyle')",
];

/// What ends with the transaction.
pub(crate) const LOCAL_STATE: &[&str] = &[
    "set local work_mem = '3MB'",
    "set local statement_timeout = '50s'",
    "show work_mem",
    "declare c cursor for select * from t%k order by id",
    "fetch 2 from c",
    "move 1 in c",
    "fetch all c",
    "close c",
    "select pg_advisory_xact_lock(%k)",
    "create temp table tmp on commit drop as select 1 as x",
];

/// Drops a statement of the protocol by its name, as some drivers do.
pub(crate) const DEALLOCATE: &str = "deallocate s1";

/// What a session keeps.
pub(crate) const SESSION_STATE: &[&str] = &[
    "set work_mem = '5MB'",
    "set work_mem to default",
    "show work_mem",
    "set extra_float_digits = 0",
    "set search_path = pg_catalog",
    "reset search_path",
    "show search_path",
    "set statement_timeout = '40s'",
    "show statement_timeout",
    "set session characteristics as transaction isolation level repeatable read",
    "show transaction_isolation",
    "select set_config('lock_timeout', '7s', false)",
    "show lock_timeout",
    "set role none",
    "reset all",
    "prepare p1 as select 1 as one",
    "prepare p1 (int) as select $1 + 1",
    "prepare p2 (text) as select $1 || '!'",
    "execute p1",
    "execute p1 (1)",
    "execute p2 ('x')",
    "explain (costs off) execute p2 ('x')",
    "deallocate p1",
    "deallocate prepare p2",
    "deallocate all",
    DEALLOCATE,
    DEALLOCATE,
    "discard plans",
    "discard sequences",
    "discard temp",
    "discard all",
    "listen c%k",
    "listen c%k",
    "notify c%k, 'payload'",
    "select pg_notify('c%k', 'called')",
    "unlisten c%k",
    "unlisten *",
    "declare h cursor with hold for select i from generate_series(1, 20) i",
    "fetch 3 from h",
    "close h",
    "close all",
    "create temp table tmp (x int)",
    "insert into tmp values (1), (2)",
    "select * from tmp",
    "drop table tmp",
    "select pg_advisory_lock(%k)",
    "select pg_advisory_unlock(%k)",
    "select pg_advisory_unlock_all()",
    "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
];

/// SQL that takes statements of the protocol by their names.
pub(crate) const NAMES_IN_SQL: &[&str] = &["execute s1", "execute s2", DEALLOCATE, "prepare s2 as select 1"];

pub(crate) const TABLES: &[&str] = &[
    "create table u%k (x int)",
    "drop table u%k",
    "create index on t%k (name)",
    "comment on table t%k is 'x'",
    "analyze t%k",
    "vacuum t%k",
];

/// What changes the result of a statement that is prepared.
pub(crate) const COLUMNS: &[&str] = &[
    "alter table t%k add column extra int",
    "alter table t%k drop column extra",
    "alter table t%k rename column amount to price",
    "alter table t%k rename column price to amount",
    "alter table t%k alter column amount type text",
];

pub(crate) const COPY_OUT: &[&str] = &[
    "copy t%k to stdout",
    "copy (select i from generate_series(1, 50) i) to stdout (format csv, header)",
    "copy (select 1 as a, 'b' as b) to stdout (format binary)",
    "copy (select 10 / (3 - i) from generate_series(1, 5) i) to stdout",
    "copy missing_table to stdout",
    "select 1; copy t%k (id) to stdout; select 2",
];

/// Each needs data, as often as it says `from stdin`.
pub(crate) const COPY_IN: &[&str] = &[
    "copy t%k from stdin",
    "copy t%k (id, name) from stdin (format csv)",
    "copy t%k (id) from stdin",
    "copy missing_table from stdin",
    "copy t%k (missing_column) from stdin",
];

/// The same, in the simple protocol alone.
pub(crate) const COPY_IN_AMONG: &[&str] = &[
    "select 1; copy t%k (id) from stdin; select count(*) from t%k",
    "copy t%k (id) from stdin; copy t%k (id, name) from stdin",
    "begin; copy t%k (id) from stdin; commit",
    "select 1/0; copy t%k (id) from stdin",
];

pub(crate) const COPY_DATA: &[&[u8]] = &[
    b"70\tseventy\t7\n",
    b"71,seventy-one\n",
    b"72\n",
    b"73\n74\n",
    b"75",
    b"\n",
    b"1\n",
    b"not a number\n",
    b"\\.\n",
    b"",
    b"76\tx\ty\tz\n",
];

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Text,
}

/// A statement for the extended protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statement {
    pub(crate) sql: &'static str,
    pub(crate) parameters: &'static [Kind],
}

const fn of(sql: &'static str, parameters: &'static [Kind]) -> Statement {
    Statement { sql, parameters }
}

pub(crate) const STATEMENTS: &[Statement] = &[
    of("select $1::int + 1", &[Kind::Int]),
    of("select $1::text, $2::int4", &[Kind::Text, Kind::Int]),
    of("select * from t%k where id = $1", &[Kind::Int]),
    of("select * from t%k order by id", &[]),
    of("select i, i * 2 as twice from generate_series(1, $1::int) i", &[Kind::Int]),
    of("insert into t%k (id, name) values ($1, $2) returning id, name", &[Kind::Int, Kind::Text]),
    of("update t%k set name = $1 where id = $2", &[Kind::Text, Kind::Int]),
    of("delete from t%k where id > $1", &[Kind::Int]),
    of("select 100 / ($1::int - 3)", &[Kind::Int]),
    of("select i, 10 / (4 - i) from generate_series(1, 6) i", &[]),
    of("select '2024-02-03'::date, 1.5::float8, true", &[]),
    of("", &[]),
    of("select 1; select 2", &[]),
    of("selec 1", &[]),
    of("select * from missing_table", &[]),
    of("copy t%k to stdout", &[]),
    of("show transaction_isolation", &[]),
    of("do $$ begin raise notice 'in a block'; end $$", &[]),
    of("explain (costs off) select 1", &[]),
    of("select repeat($1, 9000)", &[Kind::Text]),
];

pub(crate) const TRANSACTION_STATEMENTS: &[Statement] = &[
    of("begin", &[]),
    of("commit", &[]),
    of("rollback", &[]),
    of("savepoint a", &[]),
    of("rollback to a", &[]),
];

/// Functions by their OID (`pg_proc`), with arguments in text.
pub(crate) const FUNCTIONS: &[(u32, &[&str])] = &[
    (177, &["2", "40"]),         // int4pl
    (154, &["7", "2"]),          // int4div
    (154, &["7", "0"]),          // int4div, which fails
    (1257, &["abcdef"]),         // textlen
    (177, &["2"]),               // an argument is missing
    (999_999, &["1"]),           // no such function
    (715, &["9%k"]),             // lo_create
    (952, &["9%k", "393216"]),   // lo_open to read and write
    (955, &["0", "some bytes"]), // lowrite
    (956, &["0", "0", "0"]),     // lo_lseek
    (954, &["0", "5"]),          // loread
    (953, &["0"]),               // lo_close
    (964, &["9%k"]),             // lo_unlink
];

"""psycopg 3 at its defaults: a statement that runs for the sixth time is prepared by name."""

import logging
import os
import threading
import time
from datetime import date, datetime, timezone
from decimal import Decimal
from uuid import UUID

import psycopg
from psycopg import errors
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

# It warns of what these tests bring about.
logging.getLogger("psycopg").setLevel(logging.ERROR)

WORD = "Ünïcödé 漢字 🐘 'quoted' \"double\" back\\slash"


def connect(**options):
    # Host, port, user, password, database and TLS come from the PG* environment.
    return psycopg.connect(**options)


def raises(kind, work, *arguments):
    try:
        work(*arguments)
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def types(db):
    values = {
        "int2": 32767, "int4": -5, "int8": 2**62, "float8": 0.1, "numeric": Decimal("12345678901234567890.123456789"),
        "text": WORD, "bytea": bytes(range(256)), "bool": True, "date": date(2024, 2, 29),
        "timestamptz": datetime(2024, 2, 29, 12, 30, 1, 123456, tzinfo=timezone.utc),
        "uuid": UUID("12345678-1234-5678-1234-567812345678"), "int4[]": [1, None, 3],
        "text[]": [WORD, "", None, "NULL", "{,}"], "int4[][]": [[1, 2], [3, 4]], "jsonb": None,
    }
    for turn in range(8):
        for binary in (False, True):
            cursor = db.cursor(binary=binary)
            for kind, value in values.items():
                seen = cursor.execute(f"select %s::{kind}", (value,)).fetchone()[0]
                assert seen == value, (turn, binary, kind, seen)
            document = {"a": [1, None, WORD]}
            assert cursor.execute("select %s::jsonb", (Jsonb(document),)).fetchone()[0] == document
            assert cursor.execute("select null::int, ''::text").fetchone() == (None, "")


def transactions(db):
    db.execute("drop table if exists psycopg_t")
    db.execute("create table psycopg_t (id int primary key, word text, amount numeric)")
    db.commit()
    for number in range(12):
        db.execute("insert into psycopg_t values (%s, %s, %s)", (number, WORD, Decimal(number)))
    db.rollback()
    assert db.execute("select count(*) from psycopg_t").fetchone()[0] == 0
    with db.transaction():
        for number in range(12):
            db.execute("insert into psycopg_t values (%s, %s, %s)", (number, WORD, Decimal(number)))
    db.commit()
    with db.transaction():
        raises(errors.UniqueViolation, savepoint, db)
        db.execute("update psycopg_t set amount = amount + 1 where id = %s", (3,))
    db.commit()
    assert db.execute("select amount from psycopg_t where id = 3").fetchone()[0] == 4
    db.commit()
    cursor = db.cursor(row_factory=dict_row)
    cursor.executemany("insert into psycopg_t values (%s, %s, 0) returning id", [(n, "m") for n in range(100, 130)],
                       returning=True)
    seen = [cursor.fetchone()["id"]]
    while cursor.nextset():
        seen.append(cursor.fetchone()["id"])
    assert seen == list(range(100, 130)), seen
    db.commit()


def savepoint(db):
    with db.transaction():
        db.execute("insert into psycopg_t values (3, 'twice', 0)")


def mistakes(db):
    for _ in range(7):
        assert raises(errors.UniqueViolation, db.execute, "insert into psycopg_t values (%s, 'twice', 0)", (1,)).sqlstate == "23505"
        raises(errors.InFailedSqlTransaction, db.execute, "select 1")
        db.rollback()
        raises(errors.SyntaxError, db.execute, "selec 1")
        db.rollback()
        raises(errors.DivisionByZero, db.execute, "select 1 / %s", (0,))
        db.rollback()
        raises(errors.UndefinedTable, db.execute, "select * from psycopg_none")
        db.rollback()
    assert db.execute("select %s::text", (WORD,)).fetchone() == (WORD,)
    db.commit()


def pipelines(db):
    for _ in range(3):
        with db.pipeline() as pipeline:
            results = [db.execute("select %s::int, %s::text", (n, WORD)) for n in range(50)]
            db.cursor().executemany("update psycopg_t set word = %s where id = %s", [("p", n) for n in range(10)])
            pipeline.sync()
            assert [result.fetchone()[0] for result in results] == list(range(50))
        db.commit()

    def broken():
        with db.pipeline():
            db.execute("insert into psycopg_t values (900, 'a', 0)")
            db.execute("select 1 / %s", (0,))
            db.execute("insert into psycopg_t values (901, 'b', 0)")

    raises(errors.DivisionByZero, broken)
    db.rollback()
    assert db.execute("select count(*) from psycopg_t where id >= 900").fetchone()[0] == 0
    db.commit()
    db.autocommit = True
    with db.pipeline():
        for n in range(20):
            with db.transaction():
                db.execute("update psycopg_t set amount = %s where id = 5", (n,))
    assert db.execute("select amount from psycopg_t where id = 5").fetchone()[0] == 19
    db.autocommit = False


def copies(db):
    with db.cursor() as cursor:
        cursor.execute("create table if not exists psycopg_c (id int, word text, raw bytea)")
        cursor.execute("truncate psycopg_c")
        with cursor.copy("copy psycopg_c from stdin") as copy:
            for n in range(5000):
                copy.write_row((n, WORD if n % 2 else None, bytes([n % 256, 92, 10])))
        with cursor.copy("copy psycopg_c (id, word) from stdin (format binary)") as copy:
            copy.set_types(["int4", "text"])
            for n in range(5000, 6000):
                copy.write_row((n, WORD))
        with cursor.copy("copy (select * from psycopg_c order by id) to stdout") as copy:
            copy.set_types(["int4", "text", "bytea"])
            rows = list(copy.rows())
        assert len(rows) == 6000 and rows[1] == (1, WORD, bytes([1, 92, 10])) and rows[2][1] is None, rows[:3]
    db.commit()

    def bad_row():
        with db.cursor().copy("copy psycopg_c (id) from stdin") as copy:
            copy.write("1\nno number\n")

    def given_up():
        with db.cursor().copy("copy psycopg_c (id) from stdin") as copy:
            copy.write("1\n")
            raise KeyError("the client gives up")

    for _ in range(3):
        raises(errors.InvalidTextRepresentation, bad_row)
        db.rollback()
        raises(KeyError, given_up)
        db.rollback()
        with db.cursor().copy("copy psycopg_c to stdout") as copy:
            assert sum(len(part) for part in copy) > 6000
        assert db.execute("select count(*) from psycopg_c").fetchone()[0] == 6000
        db.commit()


def large_objects(db):
    part = bytes(range(256)) * 64
    with db.transaction():
        oid = db.execute("select lo_create(0)").fetchone()[0]
        handle = db.execute("select lo_open(%s, 131072 | 262144)", (oid,)).fetchone()[0]
        for _ in range(16):
            assert db.execute("select lowrite(%s, %s)", (handle, part)).fetchone()[0] == len(part)
        db.execute("select lo_lseek64(%s, %s, 0)", (handle, len(part)))
        assert db.execute("select loread(%s, %s)", (handle, len(part)), binary=True).fetchone()[0] == part
        db.execute("select lo_close(%s)", (handle,))
    with db.transaction():
        assert len(db.execute("select lo_get(%s)", (oid,)).fetchone()[0]) == 16 * len(part)
        db.execute("select lo_unlink(%s)", (oid,))
    db.commit()


def big_results(db):
    rows = db.execute("select g, repeat('x', 500) from generate_series(1, 20000) g").fetchall()
    assert len(rows) == 20000 and rows[-1][0] == 20000
    with db.cursor(name="psycopg_cursor") as cursor:
        cursor.itersize = 300
        cursor.execute("select g from generate_series(1, 2000) g")
        assert sum(row[0] for row in cursor) == 2001000
        cursor.scroll(0, "absolute")
        assert cursor.fetchone() == (1,)
    total = sum(row[0] for row in db.cursor().stream("select g from generate_series(1, %s) g", (2000,)))
    assert total == 2001000
    assert len(db.execute("select %s::text", ("y" * 2_000_000,)).fetchone()[0]) == 2_000_000
    db.commit()


def cancels(db):
    for _ in range(2):
        timer = threading.Timer(0.15, db.cancel_safe)
        began = time.monotonic()
        timer.start()
        raises(errors.QueryCanceled, db.execute, "select pg_sleep(%s)", (20,))
        timer.join()
        assert time.monotonic() - began < 10
        db.rollback()
    assert db.execute("select 1").fetchone() == (1,)
    db.commit()


def sessions(db):
    """What lives as long as a session."""
    db.autocommit = True
    db.execute("set application_name = 'psycopg at work'")
    db.execute("create temp table psycopg_temp (x int)")
    db.execute("select pg_advisory_lock(77)")
    db.execute("listen psycopg_channel")
    db.execute("prepare psycopg_sql (int) as select $1 + 1")
    assert db.execute("execute psycopg_sql(41)").fetchone() == (42,)
    with connect(autocommit=True) as other:
        assert other.execute("select pg_try_advisory_lock(77)").fetchone() == (False,)
        other.execute("select pg_notify('psycopg_channel', %s)", (WORD,))
    notice = next(db.notifies(timeout=10))
    assert (notice.channel, notice.payload) == ("psycopg_channel", WORD), notice
    db.execute("insert into psycopg_temp values (1)")
    assert db.execute("select pg_advisory_unlock(77)").fetchone() == (True,)
    db.execute("discard all")
    db.autocommit = False


def reconnects():
    for n in range(10):
        with connect() as db:
            for _ in range(6):
                assert db.execute("select %s::int", (n,)).fetchone() == (n,)
    db = connect(autocommit=True)
    raises(psycopg.OperationalError, db.execute, "select pg_terminate_backend(pg_backend_pid())")
    db.close()
    with connect(autocommit=True) as db:
        assert db.execute("select 1").fetchone() == (1,)
        # A driver that cannot close in order: the socket goes in the midst of a transaction.
        lost = connect()
        lost.execute("insert into psycopg_t values (777, 'lost', 0)")
        os.close(lost.fileno())
        assert db.execute("select count(*) from psycopg_t where id = 777").fetchone() == (0,)


def many_at_once():
    failures = []

    def work(number):
        try:
            with connect() as db:
                for turn in range(20):
                    with db.transaction():
                        row = db.execute("select %s::int * 2, %s::text", (number, f"{turn}")).fetchone()
                        assert row == (2 * number, f"{turn}"), row
                        db.execute("update psycopg_t set amount = amount + 1 where id = %s", (number,))
                    # The same statement with other types: another one for the server.
                    assert db.execute("select %s", (turn,)).fetchone() == (turn,)
                    assert db.execute("select %s", (f"{turn}",)).fetchone() == (f"{turn}",)
                    db.commit()
        except BaseException as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def main():
    with connect() as db:
        assert db.info.server_version >= 90000 and db.info.encoding == "utf-8"
        types(db)
        transactions(db)
        mistakes(db)
        pipelines(db)
        copies(db)
        large_objects(db)
        big_results(db)
        cancels(db)
        # DDL under a prepared statement: the driver and the server plan it anew.
        for _ in range(8):
            db.execute("select word from psycopg_t where id = %s", (1,)).fetchone()
        db.execute("alter table psycopg_t alter column amount type float8")
        db.execute("select word from psycopg_t where id = %s", (1,)).fetchone()
        db.commit()
        sessions(db)
    many_at_once()
    reconnects()
    with connect() as db:
        db.execute("drop table psycopg_t, psycopg_c")


main()

"""asyncpg at its defaults: every statement is prepared by name, kept in a cache, and bound in binary."""

import asyncio
import io
from datetime import date, datetime, timezone
from decimal import Decimal
from uuid import UUID

import asyncpg

WORD = "Ünïcödé 漢字 🐘 'quoted' \"double\" back\\slash"


def connect():
    # Host, port, user, password, database and TLS come from the PG* environment.
    return asyncpg.connect()


async def raises(kind, work):
    try:
        await work
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


async def types(db):
    values = {
        "int2": 32767, "int4": -5, "int8": 2**62, "float8": 0.1, "numeric": Decimal("12345678901234567890.123456789"),
        "text": WORD, "bytea": bytes(range(256)), "bool": True, "date": date(2024, 2, 29),
        "timestamptz": datetime(2024, 2, 29, 12, 30, 1, 123456, tzinfo=timezone.utc),
        "uuid": UUID("12345678-1234-5678-1234-567812345678"), "int4[]": [1, None, 3],
        "text[]": [WORD, "", None, "NULL", "{,}"], "int4[][]": [[1, 2], [3, 4]], "jsonb": '{"a": [1, null]}',
        "int4range": asyncpg.Range(1, 5),
    }
    for turn in range(4):
        for kind, value in values.items():
            seen = await db.fetchval(f"select $1::{kind}", value)
            assert seen == value, (turn, kind, seen)
            assert await db.fetchval(f"select $1::{kind}", None) is None
    # Types of the database's own are asked for in the midst of a statement.
    await db.execute("drop type if exists asyncpg_mood; create type asyncpg_mood as enum ('sad', 'glad')")
    assert await db.fetchval("select array[$1::asyncpg_mood, 'sad']", "glad") == ["glad", "sad"]
    await db.execute("drop type asyncpg_mood")


async def transactions(db):
    await db.execute("drop table if exists asyncpg_t")
    await db.execute("create table asyncpg_t (id int primary key, word text, amount numeric)")
    transaction = db.transaction()
    await transaction.start()
    for number in range(12):
        await db.execute("insert into asyncpg_t values ($1, $2, $3)", number, WORD, Decimal(number))
    await transaction.rollback()
    assert await db.fetchval("select count(*) from asyncpg_t") == 0
    async with db.transaction(isolation="serializable"):
        for number in range(12):
            await db.execute("insert into asyncpg_t values ($1, $2, $3)", number, WORD, Decimal(number))
        try:
            async with db.transaction():
                await db.execute("insert into asyncpg_t values ($1, $2, $3)", 3, "twice", Decimal(0))
            raise AssertionError("no unique violation")
        except asyncpg.UniqueViolationError:
            pass
        await db.execute("update asyncpg_t set amount = amount + 1 where id = $1", 3)
    assert await db.fetchval("select amount from asyncpg_t where id = 3") == 4
    await db.executemany("insert into asyncpg_t values ($1, $2, 0)", [(n, "m") for n in range(100, 600)])
    assert await db.fetchval("select count(*) from asyncpg_t where word = 'm'") == 500
    await raises(asyncpg.UniqueViolationError,
                 db.executemany("insert into asyncpg_t values ($1, $2, 0)", [(n, "x") for n in range(600, 500, -1)]))
    assert await db.fetchval("select count(*) from asyncpg_t where word = 'x'") == 0


async def statements(db):
    first = await db.prepare("select $1::int + 1 as next, $2::text as word")
    second = await db.prepare("select word from asyncpg_t where id = any($1::int[]) order by id")
    assert [column.name for column in first.get_attributes()] == ["next", "word"]
    for number in range(12):
        assert tuple(await first.fetchrow(number, WORD)) == (number + 1, WORD)
        assert len(await second.fetch([number % 12, 0])) == (1 if number % 12 == 0 else 2)
    # More different statements than the cache of the driver holds: the eldest are closed.
    for number in range(150):
        assert await db.fetchval(f"select $1::int + {number}", 1) == number + 1
    assert await db.fetchval("select $1::int + 0", 1) == 1
    async with db.transaction():
        cursor = await db.cursor("select g from generate_series(1, $1::int) g", 500)
        assert [row[0] for row in await cursor.fetch(10)] == list(range(1, 11))
        assert await cursor.forward(90) == 90
        assert (await cursor.fetchrow())[0] == 101
        total = 0
        async for row in db.cursor("select g from generate_series(1, 2000) g", prefetch=77):
            total += row[0]
        assert total == 2001000


async def mistakes(db):
    for _ in range(7):
        await raises(asyncpg.UniqueViolationError, db.execute("insert into asyncpg_t values ($1, 'twice', 0)", 1))
        await raises(asyncpg.PostgresSyntaxError, db.fetch("selec 1"))
        await raises(asyncpg.DivisionByZeroError, db.fetchval("select 1 / $1::int", 0))
        await raises(asyncpg.UndefinedTableError, db.fetch("select * from asyncpg_none"))
        await raises(asyncpg.DataError, db.fetch("select $1::int", "no number"))
        transaction = db.transaction()
        await transaction.start()
        await raises(asyncpg.DivisionByZeroError, db.fetchval("select 1 / $1::int", 0))
        await raises(asyncpg.InFailedSQLTransactionError, db.fetchval("select 1"))
        await transaction.rollback()
    assert await db.fetchval("select $1::text", WORD) == WORD


async def copies(db):
    await db.execute("drop table if exists asyncpg_c; create table asyncpg_c (id int, word text, raw bytea)")
    rows = [(n, WORD if n % 2 else None, bytes([n % 256, 92, 10])) for n in range(6000)]
    assert await db.copy_records_to_table("asyncpg_c", records=rows) == "COPY 6000"
    out = io.BytesIO()
    assert await db.copy_from_query("select id, word from asyncpg_c where id < $1", 3000, output=out, format="csv") == "COPY 3000"
    out.seek(0)
    assert await db.copy_to_table("asyncpg_c", source=out, columns=["id", "word"], format="csv") == "COPY 3000"
    out = io.BytesIO()
    assert await db.copy_from_table("asyncpg_c", output=out, format="binary") == "COPY 9000"
    for _ in range(3):
        await raises(asyncpg.InvalidTextRepresentationError,
                     db.copy_to_table("asyncpg_c", source=io.BytesIO(b"1\nno number\n"), columns=["id"]))

        async def given_up():
            yield b"1\n"
            raise KeyError("the client gives up")

        await raises(KeyError, db.copy_to_table("asyncpg_c", source=given_up(), columns=["id"]))
        assert await db.fetchval("select count(*) from asyncpg_c") == 9000


async def large_objects(db):
    part = bytes(range(256)) * 64
    async with db.transaction():
        oid = await db.fetchval("select lo_create(0)")
        handle = await db.fetchval("select lo_open($1, 131072 | 262144)", oid)
        for _ in range(16):
            assert await db.fetchval("select lowrite($1, $2)", handle, part) == len(part)
        await db.execute("select lo_lseek64($1, $2, 0)", handle, len(part))
        assert await db.fetchval("select loread($1, $2)", handle, len(part)) == part
    assert len(await db.fetchval("select lo_get($1)", oid)) == 16 * len(part)
    await db.execute("select lo_unlink($1)", oid)


async def big_results(db):
    rows = await db.fetch("select g, repeat('x', 500) as x from generate_series(1, 20000) g")
    assert len(rows) == 20000 and rows[-1]["g"] == 20000
    assert len(await db.fetchval("select $1::text", "y" * 2_000_000)) == 2_000_000


async def cancels(db):
    for _ in range(2):
        # A time limit, and a task that is cancelled, both send a cancel request.
        await raises(asyncio.TimeoutError, db.fetchval("select pg_sleep($1)", 20, timeout=0.15))
        # Which waits for the end of the cancel request: a task that is cancelled while it does so confuses the driver.
        assert await db.fetchval("select 1") == 1
        task = asyncio.create_task(db.fetchval("select pg_sleep($1)", 20))
        await asyncio.sleep(0.15)
        task.cancel()
        await raises(asyncio.CancelledError, task)
        assert await asyncio.wait_for(db.fetchval("select 1"), 10) == 1
    transaction = db.transaction()
    await transaction.start()
    await raises(asyncio.TimeoutError, db.fetchval("select pg_sleep($1)", 20, timeout=0.15))
    await transaction.rollback()
    assert await db.fetchval("select 1") == 1


async def sessions(db):
    """What lives as long as a session."""
    heard = asyncio.Queue()
    await db.add_listener("asyncpg_channel", lambda *told: heard.put_nowait(told[2:]))
    await db.execute("create temp table asyncpg_temp (x int)")
    await db.execute("select pg_advisory_lock(78)")
    other = await connect()
    assert await other.fetchval("select pg_try_advisory_lock(78)") is False
    await other.execute("select pg_notify('asyncpg_channel', $1)", WORD)
    await other.close()
    assert await asyncio.wait_for(heard.get(), 10) == ("asyncpg_channel", WORD)
    await db.execute("insert into asyncpg_temp values ($1)", 1)
    await db.reset()
    assert await db.fetchval("select count(*) from pg_locks where locktype = 'advisory' and objid = 78") == 0


async def schema_changes(db):
    """Statements that are prepared already, under DDL: the driver is told, and prepares anew."""
    wanted = "select * from asyncpg_t where id = $1"
    for _ in range(6):
        await db.fetchrow(wanted, 1)
    await db.execute("alter table asyncpg_t add column extra int default 7")
    assert (await db.fetchrow(wanted, 1))["extra"] == 7
    await db.execute("alter table asyncpg_t drop column extra")
    assert "extra" not in (await db.fetchrow(wanted, 1))


async def reconnects():
    for number in range(10):
        db = await connect()
        for _ in range(6):
            assert await db.fetchval("select $1::int", number) == number
        await db.close()
    db = await connect()
    await raises((asyncpg.PostgresConnectionError, asyncpg.AdminShutdownError, ConnectionError),
                 db.execute("select pg_terminate_backend(pg_backend_pid())"))
    db.terminate()
    db = await connect()
    lost = await connect()
    await lost.execute("begin")
    await lost.execute("insert into asyncpg_t values (777, 'lost', 0)")
    lost.terminate()
    assert await db.fetchval("select count(*) from asyncpg_t where id = 777") == 0
    await db.close()


async def many_at_once():
    async with asyncpg.create_pool(min_size=8, max_size=8) as pool:

        async def work(number):
            for turn in range(20):
                async with pool.acquire() as db:
                    async with db.transaction():
                        row = await db.fetchrow("select $1::int * 2, $2::text", number, f"{turn}")
                        assert tuple(row) == (2 * number, f"{turn}"), row
                        await db.execute("update asyncpg_t set amount = amount + 1 where id = $1", number)
                    assert await db.fetchval("select $1::int", turn) == turn

        await asyncio.gather(*(work(number) for number in range(12)))


async def main():
    db = await connect()
    await types(db)
    await transactions(db)
    await statements(db)
    await mistakes(db)
    await copies(db)
    await large_objects(db)
    await big_results(db)
    await cancels(db)
    await schema_changes(db)
    await sessions(db)
    await db.close()
    await many_at_once()
    await reconnects()
    db = await connect()
    await db.execute("drop table asyncpg_t, asyncpg_c")
    await db.close()


asyncio.run(main())

"""Clients that prepare everything by name, more of it than their cache holds, until the time is over: see soak.rs."""

import asyncio
import os
import random
import time

import asyncpg

END = time.monotonic() + float(os.environ["SOAK_S"])
CLIENTS = int(os.environ["SOAK_CLIENTS"])


async def client(number):
    dice = random.Random(100 + number)
    while time.monotonic() < END:
        db = await asyncpg.connect(statement_cache_size=dice.choice([100, 100, 3]))
        own = await db.prepare(f"select $1::int + {number}")
        for _ in range(dice.randrange(100, 400)):
            await piece(db, dice, number, own)
            if time.monotonic() >= END:
                break
        if dice.randrange(4) == 0:
            db.terminate()
        else:
            await db.close()


async def piece(db, dice, number, own):
    n = dice.randrange(250)
    match dice.randrange(7):
        case 0:
            assert await db.fetchval(f"select $1::int + {n}", number) == number + n
        case 1:
            assert await own.fetchval(n) == n + number
        case 2:
            async with db.transaction():
                await db.execute("update soak set amount = amount + 1 where id = $1", n % 20)
                assert await db.fetchval(f"select {n} from soak where id = $1", n % 20) == n
        case 3:
            try:
                async with db.transaction():
                    assert await own.fetchval(n) == n + number
                    await db.fetchval(f"select $1::int / ($2::int - {n})", number, n)
                raise AssertionError("no error")
            except asyncpg.DivisionByZeroError:
                pass
        case 4:
            await db.executemany(f"update soak set word = 'w{n % 9}' where id = $1", [(step,) for step in sorted({n % 20, 3, 5})])
        case 5:
            async with db.transaction():
                rows = [row[0] async for row in db.cursor(f"select g + {n % 5} from generate_series(1, $1::int) g", 60, prefetch=7)]
            assert rows == [g + n % 5 for g in range(1, 61)]
        case 6:
            try:
                await db.fetchval("select pg_sleep($1)", 5, timeout=0.02)
            except asyncio.TimeoutError:
                pass


async def main():
    await asyncio.gather(*(client(number) for number in range(CLIENTS)))


asyncio.run(main())

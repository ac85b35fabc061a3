"""Clients with pools of their own, on both drivers, until the time is over: see soak.rs."""

import asyncio
import os
import random
import threading
import time

from sqlalchemy import create_engine, exc, text
from sqlalchemy.ext.asyncio import create_async_engine

END = time.monotonic() + float(os.environ["SOAK_S"])
CLIENTS = int(os.environ["SOAK_CLIENTS"])
failures = []


def piece(connection, dice, number):
    n = dice.randrange(250)
    with connection.begin():
        assert connection.execute(text(f"select cast(:number as int) + {n}"), {"number": number}).scalar() == number + n
    with connection.begin():
        connection.execute(text("update soak set amount = amount + 1 where id = :id"), {"id": n % 20})
        try:
            with connection.begin_nested():
                connection.execute(text(f"select {n} / cast(:zero as int)"), {"zero": 0})
            raise AssertionError("no error")
        except exc.DBAPIError as error:
            assert "division by zero" in str(error), error
        assert connection.execute(text(f"select {n} from soak where id = :id"), {"id": n % 20}).scalar() == n


def with_psycopg(number):
    try:
        dice = random.Random(200 + number)
        while time.monotonic() < END and not failures:
            engine = create_engine("postgresql+psycopg://", pool_size=1)
            for _ in range(20):
                with engine.connect() as connection:
                    for _ in range(dice.randrange(10)):
                        piece(connection, dice, number)
                if time.monotonic() >= END:
                    break
            engine.dispose()
    except BaseException as error:
        failures.append(f"client {number}: {error!r}")


async def with_asyncpg(number):
    dice = random.Random(300 + number)
    while time.monotonic() < END:
        engine = create_async_engine("postgresql+asyncpg://", pool_size=1)
        for _ in range(20):
            async with engine.connect() as connection:
                for _ in range(dice.randrange(10)):
                    await connection.run_sync(piece, dice, number)
            if time.monotonic() >= END:
                break
        await engine.dispose()


async def all_with_asyncpg():
    await asyncio.gather(*(with_asyncpg(number) for number in range(CLIENTS // 2)))


threads = [threading.Thread(target=with_psycopg, args=(number,)) for number in range(CLIENTS - CLIENTS // 2)]
for thread in threads:
    thread.start()
asyncio.run(all_with_asyncpg())
for thread in threads:
    thread.join()
assert not failures, failures

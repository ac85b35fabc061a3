"""Clients that prepare by themselves, in many forms, until the time is over: see soak.rs."""

import logging
import os
import random
import threading
import time

import psycopg
from psycopg import errors

# It warns of what is brought about here.
logging.getLogger("psycopg").setLevel(logging.ERROR)

END = time.monotonic() + float(os.environ["SOAK_S"])
CLIENTS = int(os.environ["SOAK_CLIENTS"])
failures = []


def client(number):
    dice = random.Random(number)
    while time.monotonic() < END and not failures:
        # A connection does some hundred pieces of work; then the next one comes.
        with psycopg.connect(prepare_threshold=dice.choice([0, 2, 5])) as db:
            for _ in range(dice.randrange(100, 400)):
                piece(db, dice, number)
                if time.monotonic() >= END:
                    break


def piece(db, dice, number):
    n = dice.randrange(250)
    match dice.randrange(7):
        case 0:
            assert db.execute(f"select %s::int + {n}", (number,)).fetchone() == (number + n,)
        case 1:
            with db.transaction():
                db.execute("update soak set amount = amount + 1 where id = %s", (n % 20,))
                db.execute(f"select word, {n} from soak where id = %s", (n % 20,)).fetchone()
        case 2:
            try:
                with db.transaction():
                    db.execute(f"select %s / (%s - {n})", (number, n))
                raise AssertionError("no error")
            except errors.DivisionByZero:
                pass
        case 3:
            with db.pipeline():
                results = [db.execute(f"select %s::int * {n % 30}", (step,)) for step in range(12)]
                assert [result.fetchone()[0] for result in results] == [step * (n % 30) for step in range(12)]
        case 4:
            try:
                with db.transaction():
                    with db.pipeline():
                        db.execute(f"select {n}, %s::text", ("a",))
                        db.execute("select 1 / %s::int", (0,))
                        db.execute(f"select {n}, %s::int", (1,))
                raise AssertionError("no error")
            except errors.DivisionByZero:
                pass
        case 5:
            # The same words with other types.
            assert db.execute(f"select {n}, %s", (n,)).fetchone() == (n, n)
            assert db.execute(f"select {n}, %s", (str(n),)).fetchone() == (n, str(n))
        case 6:
            with db.transaction(), db.cursor() as cursor, cursor.copy("copy (select id from soak order by id) to stdout") as copy:
                assert len(list(copy.rows())) == 20
    db.commit()


def guarded(number):
    try:
        client(number)
    except BaseException as error:
        failures.append(f"client {number}: {error!r}")


threads = [threading.Thread(target=guarded, args=(number,)) for number in range(CLIENTS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures

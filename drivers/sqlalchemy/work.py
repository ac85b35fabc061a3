"""SQLAlchemy at its defaults, with its pool, on psycopg and on asyncpg (both take the PG* environment by themselves)."""

import asyncio
import threading
from decimal import Decimal

from sqlalchemy import (ARRAY, JSON, ForeignKey, LargeBinary, Numeric, String, create_engine, exc, func, inspect, select,
                        text)
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, selectinload

WORD = "Ünïcödé 漢字 🐘 'quoted' \"double\" back\\slash"


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "sqlalchemy_author"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    money: Mapped[Decimal | None] = mapped_column(Numeric(20, 4))
    tags: Mapped[list[str] | None] = mapped_column(ARRAY(String))
    more: Mapped[dict | None] = mapped_column(JSON)
    raw: Mapped[bytes | None] = mapped_column(LargeBinary)
    books: Mapped[list["Book"]] = relationship(back_populates="author", cascade="all, delete-orphan")


class Book(Base):
    __tablename__ = "sqlalchemy_book"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    author_id: Mapped[int] = mapped_column(ForeignKey(Author.id))
    author: Mapped[Author] = relationship(back_populates="books")


def authors(first, count):
    return [
        Author(name=f"{WORD} {n}", money=Decimal(n) / 4, tags=["a", WORD], more={"n": [n, None]}, raw=bytes(range(256)),
               books=[Book(title=f"{n}.{b}") for b in range(3)])
        for n in range(first, first + count)
    ]


def work_in(session):
    """The same for both kinds of engine: a session that blocks."""
    session.add_all(authors(0, 40))
    session.commit()
    for _ in range(8):
        seen = session.scalars(select(Author).where(Author.money < 5).options(selectinload(Author.books))).all()
        assert len(seen) == 20 and all(len(author.books) == 3 for author in seen)
        assert seen[3].tags == ["a", WORD] and seen[3].more == {"n": [3, None]} and seen[3].raw == bytes(range(256))
        session.rollback()
    for _ in range(8):
        try:
            with session.begin_nested():
                session.add(Author(name=f"{WORD} 1"))
                session.flush()
            raise AssertionError("no unique violation")
        except exc.IntegrityError:
            pass
        session.execute(select(func.count()).select_from(Book)).scalar_one()
    session.commit()
    try:
        session.execute(text("selec 1"))
        raise AssertionError("no syntax error")
    except exc.ProgrammingError:
        session.rollback()
    author = session.get(Author, 1)
    author.money += 1
    author.books.pop()
    session.commit()
    total = session.execute(select(func.sum(func.length(Book.title)), func.count())).one()
    assert total[1] == 119, total
    big = session.execute(select(func.generate_series(1, 20000), func.repeat("x", 200))).all()
    assert len(big) == 20000
    rows = session.execute(select(func.generate_series(1, 5000)), execution_options={"yield_per": 500})
    assert sum(row[0] for row in rows) == 12502500
    session.commit()


def with_psycopg():
    engine = create_engine("postgresql+psycopg://")
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    assert {column["name"] for column in inspect(engine).get_columns("sqlalchemy_author")} >= {"id", "money", "tags"}
    with Session(engine) as session:
        work_in(session)
    failures = []

    def work(number):
        try:
            for turn in range(10):
                with Session(engine) as session, session.begin():
                    session.add_all(authors(1000 + number * 100 + turn, 1))
                    session.flush()
                    assert session.scalar(select(Author.id).where(Author.name == f"{WORD} {1000 + number * 100 + turn}"))
        except BaseException as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    # A pool whose connections have died: with the check before use it is as if nothing had been.
    checked = create_engine("postgresql+psycopg://", pool_pre_ping=True)
    with checked.connect() as connection:
        connection.execute(text("select 1"))
        connection.commit()
        try:
            connection.execute(text("select pg_terminate_backend(pg_backend_pid())"))
            raise AssertionError("still there")
        except exc.DBAPIError as error:
            assert error.connection_invalidated, error
    with checked.connect() as connection:
        assert connection.execute(text("select 1")).scalar() == 1
    checked.dispose()
    Base.metadata.drop_all(engine)
    engine.dispose()


async def with_asyncpg():
    engine = create_async_engine("postgresql+asyncpg://")
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.drop_all)
        await connection.run_sync(Base.metadata.create_all)
    async with AsyncSession(engine) as session:
        await session.run_sync(work_in)

    async def work(number):
        for turn in range(10):
            async with AsyncSession(engine) as session, session.begin():
                session.add_all(authors(1000 + number * 100 + turn, 1))
                await session.flush()
                assert await session.scalar(select(Author.id).where(Author.name == f"{WORD} {1000 + number * 100 + turn}"))

    await asyncio.gather(*(work(number) for number in range(12)))
    async with engine.connect() as connection:
        rows = await connection.stream(text("select g from generate_series(1, 3000) g"))
        assert sum([row[0] async for row in rows]) == 4501500
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.drop_all)
    await engine.dispose()


with_psycopg()
asyncio.run(with_asyncpg())

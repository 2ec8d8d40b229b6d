import asyncio
import sqlite3

import pytest

from proxy_operator.adapters.embedded.data_dir import DataDir
from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.transaction import Transaction
from proxy_operator.domain.kinds import PROXY
from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime import verbs
from proxy_operator.runtime.errors import ConflictError, UnavailableError
from proxy_operator.runtime.objects import ObjectKey


def insert(message: str):
    """An operation that leaves a row behind."""

    def operation(transaction: Transaction) -> str:
        transaction.connection.execute(
            "INSERT INTO events VALUES ('u', 'ns', 'n', 't', 'r', 'a', ?, 1, 0, 0)", (message,)
        )
        return message

    return operation


def insert_and_fail(message: str):
    def operation(transaction: Transaction) -> str:
        insert(message)(transaction)
        raise ConflictError(message)

    return operation


async def rows(database: Database) -> set[str]:
    return await database.read(
        lambda c: {message for (message,) in c.execute("SELECT message FROM events")}
    )


async def test_writes_of_one_moment_share_a_commit_and_keep_their_own_answers(database: Database):
    started: list[int] = []

    def numbered(number: int):
        def operation(transaction: Transaction) -> int:
            started.append(id(transaction))
            insert(str(number))(transaction)
            return number

        return operation

    answers = await asyncio.gather(*(database.write(numbered(n)) for n in range(50)))
    assert answers == [*range(50)]
    assert len(await rows(database)) == 50
    assert len(set(started)) == 2


async def test_an_operation_that_fails_leaves_its_neighbours_alone(database: Database):
    answers = await asyncio.gather(
        *(database.write(insert("first")) for _ in range(1)),
        database.write(insert("a")),
        database.write(insert_and_fail("b")),
        database.write(insert("c")),
        return_exceptions=True,
    )
    assert [*answers[:2], answers[3]] == ["first", "a", "c"]
    assert isinstance(answers[2], ConflictError)
    assert await rows(database) == {"first", "a", "c"}


async def test_an_operation_that_fails_late_is_no_change(database: Database):
    told: list[int] = []
    database.add_listener(lambda changes: told.extend(c.resource_version for c in changes))
    stamp = verbs.Stamp("u", "2026-01-01T00:00:00Z")

    def create(name: str, *, is_refused: bool = False):
        def operation(transaction: Transaction) -> Proxy:
            target = transaction.target(PROXY, ObjectKey("default", name))
            content = {"spec": {"provider": "local"}}
            made = transaction.commit(PROXY, target, verbs.create(target, {}, content, stamp))
            if is_refused:
                raise ConflictError(name)
            return made

        return operation

    answers = await asyncio.gather(
        database.write(create("a")),
        database.write(create("b", is_refused=True)),
        database.write(create("c")),
        return_exceptions=True,
    )
    assert isinstance(answers[1], ConflictError)
    stored = [a.metadata.resource_version for a in answers if isinstance(a, Proxy)]
    assert stored == ["2", "3"]
    assert told == [2, 3]


async def test_when_the_disk_fails_nobody_is_told_it_was_written(database: Database):
    def full(transaction: Transaction) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    answers = await asyncio.gather(
        database.write(insert("before")),
        database.write(insert("a")),
        database.write(full),
        database.write(insert("b")),
        return_exceptions=True,
    )
    assert answers[0] == "before"
    assert all(isinstance(a, UnavailableError) for a in answers[1:])
    assert len({id(a) for a in answers}) == 4
    assert await rows(database) == {"before"}
    assert await database.write(insert("after")) == "after"


async def test_a_caller_that_goes_away_disturbs_nobody(database: Database):
    async with asyncio.TaskGroup() as tasks:
        gone = tasks.create_task(database.write(insert("gone")))
        also_gone = tasks.create_task(database.write(insert("also")))
        stays = tasks.create_task(database.write(insert("stays")))
        await asyncio.sleep(0)
        gone.cancel()
        also_gone.cancel()
    assert stays.result() == "stays"
    assert await rows(database) == {"gone", "also", "stays"}


async def test_closing_finishes_what_was_begun(data_dir: DataDir):
    database = Database(data_dir.store_path)
    await database.open(create=True)
    async with asyncio.TaskGroup() as tasks:
        writes = [tasks.create_task(database.write(insert(str(n)))) for n in range(100)]
        await asyncio.sleep(0)
        await database.close()
    assert len([w.result() for w in writes]) == 100
    again = Database(data_dir.store_path)
    await again.open(create=False)
    assert len(await rows(again)) == 100
    await again.close()


async def test_a_store_that_is_not_open_is_unavailable(data_dir: DataDir):
    database = Database(data_dir.store_path)
    with pytest.raises(UnavailableError, match="not open"):
        await rows(database)
    await database.open(create=True)
    await database.close()
    with pytest.raises(UnavailableError, match="not open"):
        await database.write(insert("late"))
    with pytest.raises(UnavailableError, match="not open"):
        await rows(database)


async def test_queries_cannot_write(database: Database):
    with pytest.raises(UnavailableError, match="readonly"):
        await database.read(lambda c: c.execute("DELETE FROM objects"))


async def test_a_commit_is_synced(database: Database):
    assert database._writer is not None
    assert database._writer.execute("PRAGMA synchronous").fetchone() == (2,)
    assert database._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)

import asyncio
import sqlite3
from pathlib import Path

import pytest

from proxy_operator.adapters.embedded import migrations
from proxy_operator.adapters.embedded.data_dir import DataDir
from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.errors import DataDirError
from proxy_operator.adapters.embedded.object_store import SqliteObjectClient
from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.errors import UnavailableError
from proxy_operator.testing.fake_objects import DecodingAdmission
from proxy_operator.testing.object_client_contract import a_proxy


def execute(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def one_step_more(monkeypatch: pytest.MonkeyPatch, *statements: str) -> None:
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, statements))


async def written_store(data_dir: DataDir) -> Path:
    database = Database(data_dir.store_path)
    await database.open(create=True)
    await client_of(database).create(a_proxy("default"))
    await database.close()
    return data_dir.store_path


def client_of(database: Database) -> SqliteObjectClient:
    return SqliteObjectClient(database, DecodingAdmission(), SystemClock())


async def refusal(path: Path, *, create: bool = False) -> str:
    database = Database(path)
    with pytest.raises(DataDirError) as caught:
        await database.open(create=create)
    await database.close()
    return str(caught.value)


async def test_a_missing_store_is_made_only_for_who_may_write(data_dir: DataDir):
    path = data_dir.store_path
    assert "there is no store" in await refusal(path)
    assert not path.exists()
    path.touch()
    assert "there is no store" in await refusal(path)
    await written_store(data_dir)


async def test_two_processes_may_make_the_store_at_once(data_dir: DataDir):
    databases = [Database(data_dir.store_path) for _ in range(5)]
    await asyncio.gather(*(d.open(create=True) for d in databases))
    clients = [client_of(d) for d in databases]
    for number, client in enumerate(clients):
        await client.create(a_proxy("default", f"p{number}"))
    assert len({await d.cluster_id() for d in databases}) == 1
    assert len((await clients[0].list(Proxy)).items) == 5
    for database in databases:
        await database.close()


async def test_a_newer_store(data_dir: DataDir):
    path = await written_store(data_dir)
    execute(path, "PRAGMA user_version = 99")
    assert "was written by a newer version (schema 99" in await refusal(path, create=True)
    database = Database(path)
    with pytest.raises(DataDirError, match="newer version"):
        await database.migrate()
    await database.close()


async def test_an_older_store_is_upgraded_by_the_operator_only(
    data_dir: DataDir, monkeypatch: pytest.MonkeyPatch
):
    path = await written_store(data_dir)
    one_step_more(monkeypatch, "ALTER TABLE objects ADD COLUMN note TEXT")
    assert "start `proxy-operator run` with it once" in await refusal(path, create=True)
    database = Database(path)
    await database.migrate()
    await database.migrate()
    await database.open(create=False)
    assert len((await client_of(database).list(Proxy)).items) == 1
    await database.close()


async def test_a_step_that_fails_changes_nothing(
    data_dir: DataDir, monkeypatch: pytest.MonkeyPatch
):
    path = await written_store(data_dir)
    with monkeypatch.context() as patch:
        one_step_more(patch, "DROP TABLE objects", "no SQL")
        database = Database(path)
        with pytest.raises(DataDirError, match="syntax error"):
            await database.migrate()
        await database.close()
    database = Database(path)
    await database.open(create=False)
    assert len((await client_of(database).list(Proxy)).items) == 1
    await database.close()


async def test_a_store_upgraded_under_an_open_one_takes_no_writes(data_dir: DataDir):
    database = Database(await written_store(data_dir))
    await database.open(create=False)
    execute(data_dir.store_path, "PRAGMA user_version = 99")
    with pytest.raises(UnavailableError, match="newer version"):
        await client_of(database).create(a_proxy("default", "p2"))
    await database.close()


async def test_another_programs_database(data_dir: DataDir):
    execute(data_dir.store_path, "CREATE TABLE theirs (x)")
    assert "another program's database" in await refusal(data_dir.store_path, create=True)


async def test_no_database_at_all(data_dir: DataDir):
    data_dir.store_path.write_bytes(b"something else entirely" * 100)
    sentence = await refusal(data_dir.store_path, create=True)
    assert "is not a store of proxy-operator (file is not a database)" in sentence


async def test_the_cluster_id_is_made_once(data_dir: DataDir):
    path = await written_store(data_dir)
    seen = set()
    for _ in range(2):
        database = Database(path)
        await database.migrate()
        await database.open(create=True)
        seen.add(await database.cluster_id())
        await database.close()
    (cluster_id,) = seen
    assert len(cluster_id) == 36

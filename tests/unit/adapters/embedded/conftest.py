"""An open store in a fresh data directory."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proxy_operator.adapters.embedded.data_dir import DataDir
from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.object_store import SqliteObjectClient
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.testing.fake_objects import DecodingAdmission


@pytest.fixture
def data_dir(tmp_path: Path) -> DataDir:
    data_dir = DataDir(tmp_path / "data")
    data_dir.prepare(create=True)
    return data_dir


@pytest.fixture
async def database(data_dir: DataDir) -> AsyncIterator[Database]:
    database = Database(data_dir.store_path)
    await database.open(create=True)
    yield database
    await database.close()


@pytest.fixture
def client(database: Database) -> SqliteObjectClient:
    return SqliteObjectClient(database, DecodingAdmission(), SystemClock())

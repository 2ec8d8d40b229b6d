"""The contract of the object port, on every home of ours that needs no cluster."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proxy_operator.adapters.admission.validate import Admission
from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.object_store import SqliteObjectClient
from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.clock import LoopClock, SystemClock
from proxy_operator.runtime.objects import MetadataPatch, ObjectClient, ObjectKey, Preconditions
from proxy_operator.testing.fake_objects import FakeObjectClient
from proxy_operator.testing.object_client_contract import ObjectClientContract, a_proxy
from tests.builders import EPOCH

HISTORY = 40


async def forget(client: ObjectClient, namespace: str) -> None:
    made = await client.create(a_proxy(namespace, "noise"))
    for number in range(HISTORY * 2):
        await client.patch_metadata(
            Proxy,
            ObjectKey(namespace, "noise"),
            Preconditions(made.metadata.uid),
            MetadataPatch({"n": str(number)}),
        )


class TestSqlite(ObjectClientContract):
    @pytest.fixture
    async def client(self, tmp_path: Path) -> AsyncIterator[ObjectClient]:
        database = Database(tmp_path / "store.sqlite3", HISTORY)
        await database.open(create=True)
        yield SqliteObjectClient(database, Admission(), SystemClock())
        await database.close()

    async def forget_history(self, client: ObjectClient, namespace: str) -> None:
        await forget(client, namespace)


@pytest.mark.looptime(start=0)
class TestFake(ObjectClientContract):
    @pytest.fixture
    def client(self) -> ObjectClient:
        return FakeObjectClient(LoopClock(EPOCH), history_limit=HISTORY)

    async def forget_history(self, client: ObjectClient, namespace: str) -> None:
        await forget(client, namespace)


@pytest.mark.looptime(start=0)
class TestFakeWithRealAdmission(TestFake):
    @pytest.fixture
    def client(self) -> ObjectClient:
        return FakeObjectClient(LoopClock(EPOCH), Admission(), history_limit=HISTORY)

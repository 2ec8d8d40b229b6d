"""The write-through client keeps the promises of the port, and the informer's store keeps up."""

import pytest

from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.clock import LoopClock
from proxy_operator.runtime.informer import Informer
from proxy_operator.runtime.objects import ObjectClient
from proxy_operator.runtime.write_through import WriteThrough
from proxy_operator.testing.fake_objects import FakeObjectClient
from proxy_operator.testing.object_client_contract import ObjectClientContract
from tests.builders import EPOCH
from tests.contract.test_object_client import HISTORY, forget


@pytest.mark.looptime(start=0)
class TestWriteThrough(ObjectClientContract):
    @pytest.fixture
    def client(self) -> ObjectClient:
        clock = LoopClock(EPOCH)
        fake = FakeObjectClient(clock, history_limit=HISTORY)
        return WriteThrough(fake, {Proxy: Informer(fake, Proxy, clock=clock)})

    async def forget_history(self, client: ObjectClient, namespace: str) -> None:
        await forget(client, namespace)

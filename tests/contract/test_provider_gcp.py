"""The provider gcp keeps the promises of every provider, on the fake Compute Engine.

In process on virtual time, and once through the library over HTTP.
"""

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta

import pytest

pytest.register_assert_rewrite("proxy_operator.testing.provider_contract")

from proxy_operator.adapters.providers.gcp.api import ComputeApi  # noqa: E402 - after the hook
from proxy_operator.adapters.providers.gcp.google_session import GoogleSession  # noqa: E402
from proxy_operator.adapters.providers.gcp.provider import GcpProvider  # noqa: E402
from proxy_operator.adapters.providers.gcp.session import Document, Reply, Session  # noqa: E402
from proxy_operator.domain.proxy import GcpBlock, ProviderName, ProxySpec  # noqa: E402
from proxy_operator.provisioning.errors import TransientProviderError  # noqa: E402
from proxy_operator.runtime.clock import Clock, LoopClock, SystemClock  # noqa: E402
from proxy_operator.testing.provider_contract import (  # noqa: E402
    CLUSTER_ID,
    OTHER_CLUSTER_ID,
    ProviderContract,
    ProviderHarness,
)
from tests.builders import EPOCH  # noqa: E402
from tests.fakes.compute.conduct import Conduct, Timing  # noqa: E402
from tests.fakes.compute.messages import ReplyLostError  # noqa: E402
from tests.fakes.compute.server import Server, serving  # noqa: E402
from tests.fakes.compute.service import Service  # noqa: E402
from tests.fakes.compute.strangers import PROJECT  # noqa: E402
from tests.fakes.compute.transport import InProcessTransport  # noqa: E402
from tests.fakes.compute.world import World  # noqa: E402

SPEC = ProxySpec(
    provider=ProviderName.GCP,
    gcp=GcpBlock(
        zone="europe-west1-b",
        fallback_zones=("europe-west1-c",),
        machine_type="e2-micro",
        image="projects/images/global/images/family/ubuntu",
    ),
)


class InProcessSession:
    """A session that needs no connection."""

    def __init__(self, service: Service) -> None:
        self._transport = InProcessTransport(service)

    async def send(
        self, method: str, path: str, query: Mapping[str, str], body: Document | None = None
    ) -> Reply:
        headers = {"Content-Type": "application/json"}
        try:
            answer = await self._transport.request(
                method, path, query=query, headers=headers, body=body
            )
        except ReplyLostError as err:
            raise TransientProviderError("the connection broke") from err
        return Reply(answer.status, answer.json())

    async def close(self) -> None:
        """Nothing to let go of."""


def a_provider(session: Session, cluster_id: str, clock: Clock) -> GcpProvider:
    return GcpProvider(ComputeApi(session, PROJECT), cluster_id=cluster_id, clock=clock)


@pytest.mark.looptime(start=0, noop_cycles=3)
class TestGcpProvider(ProviderContract):
    conduct = Conduct()

    @pytest.fixture
    def harness(self) -> ProviderHarness:
        clock = LoopClock(EPOCH)
        session = InProcessSession(Service(World(clock, self.conduct)))
        return ProviderHarness(
            a_provider(session, CLUSTER_ID, clock),
            a_provider(session, OTHER_CLUSTER_ID, clock),
            spec=SPEC,
            patience=timedelta(minutes=2),
            poll=timedelta(seconds=1),
        )


class TestSlowGcpProvider(TestGcpProvider):
    """A cloud that shows instances late, gives addresses late and pages by one."""

    conduct = Conduct(
        timing=Timing(appears=timedelta(seconds=10), nat_ip=timedelta(seconds=20)),
        page_size=1,
    )


class TestGcpProviderOverHttp(ProviderContract):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[ProviderHarness]:
        pytest.importorskip("google.auth", reason="the extra gcp is not installed")
        clock, step = SystemClock(), timedelta(milliseconds=20)
        timing = Timing(appears=step, stages=2 * step, runs=3 * step, nat_ip=step, stop=2 * step)
        server = Server(Service(World(clock, Conduct(timing=timing))), clock)
        async with serving(server, "127.0.0.1", 0) as address:
            session = GoogleSession(address)
            yield ProviderHarness(
                a_provider(session, CLUSTER_ID, clock),
                a_provider(session, OTHER_CLUSTER_ID, clock),
                spec=SPEC,
            )
            await session.close()

"""The provider gcp keeps the promises of every provider, on the fake Compute Engine.

In process on virtual time, and once through the library over HTTP.
"""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

pytest.register_assert_rewrite("proxy_operator.testing.provider_contract")

from proxy_operator.adapters.providers.gcp.google_session import GoogleSession  # noqa: E402 - after the hook
from proxy_operator.runtime.clock import LoopClock, SystemClock  # noqa: E402
from proxy_operator.testing.provider_contract import (  # noqa: E402
    CLUSTER_ID,
    OTHER_CLUSTER_ID,
    ProviderContract,
    ProviderHarness,
    SurveyorContract,
)
from tests.builders import EPOCH  # noqa: E402
from tests.fakes.compute.conduct import Conduct, Timing  # noqa: E402
from tests.fakes.compute.server import Server, serving  # noqa: E402
from tests.fakes.compute.service import Service  # noqa: E402
from tests.fakes.compute.world import World  # noqa: E402
from tests.gcp_worlds import InProcessSession, a_gcp_proxy, a_provider  # noqa: E402

SPEC = a_gcp_proxy().spec


@pytest.mark.looptime(start=0, noop_cycles=3)
class TestGcpProvider(ProviderContract, SurveyorContract):
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


class TestGcpProviderOverHttp(ProviderContract, SurveyorContract):
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

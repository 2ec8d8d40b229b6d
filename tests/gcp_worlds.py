"""The provider gcp on a fake Compute Engine, in process: for the contract and for whole fleets."""

from collections.abc import Mapping
from typing import Any

import msgspec

from proxy_operator.adapters.providers.gcp.api import ComputeApi
from proxy_operator.adapters.providers.gcp.provider import GcpProvider
from proxy_operator.adapters.providers.gcp.session import Document, Reply, Session
from proxy_operator.domain.proxy import GcpBlock, ProviderName, Proxy
from proxy_operator.provisioning.errors import TransientProviderError
from proxy_operator.runtime.clock import Clock
from tests.builders import a_proxy
from tests.fakes.compute.conduct import Conduct
from tests.fakes.compute.ledger import Ledger
from tests.fakes.compute.messages import ReplyLostError, Request
from tests.fakes.compute.service import Service
from tests.fakes.compute.strangers import PROJECT
from tests.fakes.compute.transport import InProcessTransport
from tests.fakes.compute.world import World as Cloud
from tests.worlds import World

A, B = "europe-west1-b", "europe-west1-c"
_HEADERS = {"content-type": "application/json"}


class InProcessSession:
    """A session that needs no connection."""

    def __init__(self, service: Service) -> None:
        self._transport = InProcessTransport(service)

    async def send(
        self, method: str, path: str, query: Mapping[str, str], body: Document | None = None
    ) -> Reply:
        content = b"" if body is None else msgspec.json.encode(body)
        try:
            answer = await self._transport.send(Request(method, path, query, _HEADERS, content))
        except ReplyLostError as err:
            raise TransientProviderError("Compute Engine gave no answer") from err
        return Reply(answer.status, answer.json())

    async def close(self) -> None:
        """Nothing to let go of."""


def a_provider(session: Session, cluster_id: str, clock: Clock) -> GcpProvider:
    return GcpProvider(ComputeApi(session, PROJECT), cluster_id=cluster_id, clock=clock)


def a_gcp_proxy(name: str = "p1", **block: Any) -> Proxy:
    """One that falls back from zone A to zone B, unless told otherwise."""
    fields = {
        "zone": A,
        "fallback_zones": (B,),
        "machine_type": "e2-micro",
        "image": "projects/images/global/images/family/ubuntu",
        **block,
    }
    return a_proxy(name, provider=ProviderName.GCP, gcp=GcpBlock(**fields))


class GcpWorld(World):
    """The reconciler's world, with the real provider in front of a fake cloud."""

    def __init__(self, conduct: Conduct | None = None) -> None:
        super().__init__()
        self.cloud = Cloud(self.clock, conduct)
        self.session = InProcessSession(Service(self.cloud))

    @property
    def books(self) -> Ledger:
        """What happened in the cloud."""
        self.cloud.now()
        return self.cloud.ledger

    async def restart(self) -> None:
        """Start a process: the provider forgets everything too."""
        self.registry.provider = a_provider(self.session, self.cluster_id, self.clock)
        await super().restart()

    def zones(self) -> list[str]:
        """Return the zone of each instance that exists and is not going."""
        return [one.zone for one in self.cloud.machines() if one.status != "STOPPING"]


async def a_gcp_world(*proxies: Proxy, conduct: Conduct | None = None) -> GcpWorld:
    """A started operator and applied manifests."""
    world = GcpWorld(conduct)
    await world.restart()
    for proxy in proxies:
        await world.apply(proxy)
    return world

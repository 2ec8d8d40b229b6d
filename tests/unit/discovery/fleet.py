"""A fleet with a real lease store behind the discovery service."""

from datetime import timedelta
from typing import Any

from proxy_operator.discovery.model import DiscoverySettings
from proxy_operator.discovery.service import DiscoveryService
from proxy_operator.domain.condition import Condition, ConditionStatus, ConditionType
from proxy_operator.domain.proxy import Phase, Proxy, ProxyStatus
from proxy_operator.domain.secret import Credentials
from proxy_operator.leasing.feed import CandidateFeed
from proxy_operator.leasing.store import LeaseStore
from proxy_operator.runtime.clock import Clock, SystemClock
from proxy_operator.runtime.store import Store
from tests.builders import EPOCH, an_external

SETTINGS = DiscoverySettings()


class Secrets:
    """Credentials by proxy name; an Exception stands for a Secret that is of no use."""

    def __init__(self) -> None:
        self.by_name: dict[str, Credentials | ValueError] = {}
        self.asked = 0

    def credentials_for(self, proxy: Proxy) -> Credentials | None:
        self.asked += 1
        found = self.by_name.get(proxy.metadata.name)
        if isinstance(found, ValueError):
            raise found
        return found


class Outcomes:
    """Remembers what was counted."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def lease_requested(self, outcome: str) -> None:
        self.seen.append(outcome)


class Fleet:
    """What a test puts in, and the service that sees it."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.proxies: Store[Proxy] = Store()
        self.leases = LeaseStore(clock or SystemClock(), timedelta(minutes=15))
        self.proxies.add_handler(CandidateFeed(self.leases).handle)
        self.secrets = Secrets()
        self.outcomes = Outcomes()
        self.service = DiscoveryService(
            self.proxies, self.leases, self.secrets, self.outcomes, SETTINGS
        )

    def add(self, *proxies: Proxy) -> "Fleet":
        for proxy in proxies:
            self.proxies.put(proxy)
        return self


def a_status(*, healthy: bool = True, latency_millis: int | None = 20) -> ProxyStatus:
    row = Condition(
        type=ConditionType.HEALTHY,
        status=ConditionStatus.TRUE if healthy else ConditionStatus.FALSE,
        reason="ProbeSucceeded" if healthy else "ProbeFailed",
        last_transition_at=EPOCH,
    )
    return ProxyStatus(
        phase=Phase.READY if healthy else Phase.UNHEALTHY,
        latency_millis=latency_millis if healthy else None,
        conditions=(row,),
    )


def a_leasable(name: str = "p1", *, healthy: bool = True, **fields: Any) -> Proxy:
    """An External proxy whose last probe said so."""
    latency = fields.pop("latency_millis", 20)
    status = a_status(healthy=healthy, latency_millis=latency)
    return an_external(name, status=status, **fields)

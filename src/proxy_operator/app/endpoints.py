"""The servers of an operator: who answers on which listener. Building it does no I/O."""

from datetime import timedelta
from typing import Final

from proxy_operator.adapters.metrics.collectors import FleetCollector
from proxy_operator.adapters.metrics.families import render
from proxy_operator.adapters.metrics.recorders import (
    LeaseRecorder,
)
from proxy_operator.adapters.web.auth import BearerGuard, Guard, OpenGuard, TokenSource
from proxy_operator.adapters.web.dispatch import discovery_endpoint
from proxy_operator.adapters.web.exchange import Endpoint
from proxy_operator.adapters.web.limits import Limits
from proxy_operator.adapters.web.listener import Listener
from proxy_operator.adapters.web.probes import health_endpoint, metrics_endpoint
from proxy_operator.adapters.web.server import HttpServer
from proxy_operator.app.settings import Settings
from proxy_operator.app.wiring import Fleet, Foundations, Part
from proxy_operator.controllers.proxy.watches import proxies_using
from proxy_operator.discovery.model import DiscoverySettings
from proxy_operator.discovery.service import DiscoveryService
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret
from proxy_operator.leasing.allowed import AllowedCredentials
from proxy_operator.leasing.feed import CandidateFeed
from proxy_operator.leasing.gate import CredentialsGate
from proxy_operator.leasing.store import LeaseStore
from proxy_operator.leasing.sweep import Sweeper
from proxy_operator.provisioning.credentials import ServingCredentials
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.store import Store, StoreEvent
from proxy_operator.runtime.supervisor import Policy

_HTTP_GRACE: Final = timedelta(seconds=5)


def build_discovery(
    base: Foundations,
    settings: Settings,
    fleet: Fleet,
    tokens: TokenSource | None,
    listener: Listener,
) -> None:
    """Wire the lease store and the discovery API; no tokens is no authentication."""
    discovery = settings.discovery
    leases = LeaseStore(base.clock, discovery.cooldown_window)
    credentials = AllowedCredentials(
        ServingCredentials(fleet.reader, fleet.made_with), fleet.allowed
    )
    gate = CredentialsGate(leases, fleet.proxies.store, credentials)
    fleet.proxies.store.add_handler(CandidateFeed(gate).handle)
    for secrets in fleet.secrets:
        secrets.store.add_handler(lambda event: gate.recheck(_users_of(fleet.proxies.store, event)))
    FleetCollector(base.metrics, fleet.proxies.store.list, leases.total_leases)
    service = DiscoveryService(
        fleet.proxies.store,
        leases,
        credentials,
        LeaseRecorder(base.metrics),
        DiscoverySettings(max_ttl=discovery.max_lease_ttl),
    )
    guard: Guard = OpenGuard(discovery.bind) if tokens is None else BearerGuard(tokens)
    base.manager.add(Part("lease-sweep", Sweeper(leases).run), elected=False)

    def may_lease() -> bool:
        # The term ends in time even when the loop is late to be told of it.
        return base.manager.is_leader and base.fence.is_open

    _serve(base, listener, discovery_endpoint(service, guard, may_lease))


def _users_of(proxies: Store[Proxy], event: StoreEvent[Secret]) -> list[ObjectKey]:
    """Return the Proxies that refer to a Secret that came, changed or went."""
    secret = event.new or event.old
    return proxies_using(proxies, secret) if secret is not None else []


def build_health_endpoint(base: Foundations, listener: Listener) -> None:
    """Wire `/healthz` and `/readyz`."""

    def unready() -> str | None:
        return "; ".join(base.manager.unready_reasons()) or None

    # From the first moment: a process that waits for its caches is alive, and says what it lacks.
    server = _server(listener, health_endpoint({}, {"caches": unready}))
    base.manager.add_first(server, policy=Policy.FATAL)


def build_metrics_endpoint(base: Foundations, listener: Listener) -> None:
    """Wire `/metrics`."""
    _serve(base, listener, metrics_endpoint(lambda: render(base.metrics)))


def _serve(base: Foundations, listener: Listener, endpoint: Endpoint) -> None:
    base.manager.add(_server(listener, endpoint), elected=False, policy=Policy.FATAL)


def _server(listener: Listener, endpoint: Endpoint) -> HttpServer:
    return HttpServer(listener, endpoint, Limits(), _HTTP_GRACE)

"""The object graph: who answers which port. Building it does no I/O.

A home brings `Foundations`; everything above them is the same in every home.
"""

import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from proxy_operator.adapters.metrics.collectors import GuardCollector
from proxy_operator.adapters.metrics.families import Registry as MetricsRegistry
from proxy_operator.adapters.metrics.families import new_registry
from proxy_operator.adapters.metrics.recorders import (
    LeaderRecorder,
    ProbeRecorder,
    ProviderRecorder,
    QueueRecorder,
    ReconcileRecorder,
    SweepRecorder,
)
from proxy_operator.app.settings import Settings
from proxy_operator.controllers.events import EventQueue
from proxy_operator.controllers.orphan_gc.sweeper import OrphanSweeper, SweepSettings
from proxy_operator.controllers.proxy.context import Intervals, Ports, Surroundings
from proxy_operator.controllers.proxy.inputs import ThreadFingerprints
from proxy_operator.controllers.proxy.reconciler import ProxyReconciler
from proxy_operator.controllers.proxy.watches import REFERENCE_INDEX, proxies_using, secrets_of
from proxy_operator.domain.allow_list import AllowList
from proxy_operator.domain.names import CLOUD_INIT_LABEL, CREDENTIALS_LABEL
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret
from proxy_operator.health.engine import HealthEngine, HealthSettings
from proxy_operator.health.ports import Ports as HealthPorts
from proxy_operator.health.ports import Prober
from proxy_operator.health.targets import TargetRules
from proxy_operator.provisioning.brake import BrakedProvider, BrakeLimits
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.credentials import MadeWith, SecretReader
from proxy_operator.provisioning.errors import ProviderError
from proxy_operator.provisioning.fence import Fence, FencedProvider, OpenFence
from proxy_operator.provisioning.instrumented import InstrumentedProvider
from proxy_operator.provisioning.registry import Registry
from proxy_operator.provisioning.timed import TimedProvider
from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.controller import Controller
from proxy_operator.runtime.informer import Informer
from proxy_operator.runtime.manager import Cache, Manager
from proxy_operator.runtime.objects import ObjectClient
from proxy_operator.runtime.source import Channel, enqueue_mapped, enqueue_own
from proxy_operator.runtime.workqueue import WorkQueue
from proxy_operator.runtime.write_through import WriteThrough

logger = logging.getLogger(__name__)

_PROVIDER_CALL: Final = timedelta(seconds=30)


@dataclass(frozen=True, kw_only=True)
class Foundations:
    """What a home brings."""

    client: ObjectClient
    events: EventQueue
    cluster_id: str
    providers: Mapping[str, Callable[[], Provider]]
    """Makers of the providers that can be had here."""
    clock: Clock
    manager: Manager
    prober: Prober
    metrics: MetricsRegistry
    fence: Fence = field(default_factory=OpenFence)


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Objects in memory and the loop that brings them about."""

    proxies: Informer[Proxy]
    secrets: tuple[Informer[Secret], ...]
    reader: SecretReader
    made_with: MadeWith
    allowed: AllowList
    providers: Registry
    health: HealthEngine

    @property
    def caches(self) -> tuple[Cache, ...]:
        """All that must be filled before anything acts."""
        return (self.proxies, *self.secrets)


@dataclass(frozen=True, slots=True)
class Part:
    """A loop by its name, as the manager wants it."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]


def new_metrics() -> MetricsRegistry:
    """Return what a process measures itself with."""
    return new_registry()


def leader_recorder(metrics: MetricsRegistry) -> LeaderRecorder:
    """Return what measures leadership."""
    return LeaderRecorder(metrics)


def build_fleet(base: Foundations, settings: Settings, own_url: str | None) -> Fleet:
    """Wire caches, providers, health engine and reconciler, and hand them to the manager.

    `own_url` is the target that local proxies are probed against by default.
    """
    proxies = Informer(
        base.client,
        Proxy,
        clock=base.clock,
        namespace=settings.watch_namespace,
        indexers={REFERENCE_INDEX: secrets_of},
    )
    credentials, cloud_init = (
        _labelled_secrets(base, settings, label) for label in (CREDENTIALS_LABEL, CLOUD_INIT_LABEL)
    )
    reader = SecretReader(credentials.store, cloud_init.store)
    made_with = MadeWith()
    proxies.store.add_handler(made_with.handle)
    allowed = AllowList(settings.health.allow_endpoints, settings.health.allow_urls)
    health = HealthEngine(
        proxies.store,
        HealthPorts(base.prober, reader, ProbeRecorder(base.metrics), base.events),
        base.clock,
        HealthSettings(
            workers=settings.health.probe_workers,
            targets=TargetRules(health_url=settings.health.url, own_url=own_url),
            allowed=allowed,
        ),
    )
    GuardCollector(base.metrics, health.holding)
    fleet = Fleet(
        proxies=proxies,
        secrets=(credentials, cloud_init),
        reader=reader,
        made_with=made_with,
        allowed=allowed,
        providers=_providers(base, settings),
        health=health,
    )
    for cache in fleet.caches:
        base.manager.add_cache(cache)
    base.manager.add(base.events, elected=False)
    _add_controller(base, settings, fleet)
    base.manager.add(Part("health", health.run), elected=True)
    _add_gc(base, settings, fleet)
    return fleet


def _labelled_secrets(base: Foundations, settings: Settings, label: str) -> Informer[Secret]:
    """Return the cache of the Secrets made for one use; others are never read."""
    return Informer(
        base.client,
        Secret,
        clock=base.clock,
        namespace=settings.watch_namespace,
        labels={label: "true"},
    )


def _providers(base: Foundations, settings: Settings) -> Registry:
    recorder = ProviderRecorder(base.metrics)
    limits = BrakeLimits(
        settings.providers.max_instances, settings.providers.max_creates_per_minute
    )

    def decorate(name: str, provider: Provider) -> Provider:
        # The fence is innermost: it must be the last thing before the call.
        guarded: Provider = FencedProvider(provider, base.fence)
        if limits.is_any:
            guarded = BrakedProvider(guarded, limits, base.clock)
        guarded = TimedProvider(guarded, _PROVIDER_CALL)
        return InstrumentedProvider(guarded, name, recorder, base.clock)

    registry = Registry(base.providers, decorate)
    # Made now: a first refusal must be a step up from 0, not a series that nobody saw begin.
    list(registry.available())
    return registry


def _add_controller(base: Foundations, settings: Settings, fleet: Fleet) -> None:
    pace = settings.reconcile
    queue = WorkQueue("proxy", base.clock, recorder=QueueRecorder(base.metrics))
    channel = Channel("health-events", queue)
    fleet.health.subscribe(channel.offer)
    enqueue_own(fleet.proxies.store, queue)
    for secrets in fleet.secrets:
        enqueue_mapped(
            secrets.store, queue, lambda secret: proxies_using(fleet.proxies.store, secret)
        )
    ports = Ports(
        proxies=fleet.proxies.store,
        secrets=fleet.reader,
        client=WriteThrough(base.client, {Proxy: fleet.proxies}),
        providers=fleet.providers,
        health=fleet.health,
        events=base.events,
        fingerprints=ThreadFingerprints(base.cluster_id),
    )
    intervals = Intervals(
        provisioning_poll=pace.provisioning_poll,
        deletion_poll=pace.deletion_poll,
        drift_poll=pace.drift_poll,
        quota_retry=pace.quota_retry,
        requeue_now=pace.requeue_now,
        appear_deadline=pace.appear_deadline,
    )
    around = Surroundings(ports, base.clock, base.cluster_id, intervals, made_with=fleet.made_with)
    controller = Controller(
        ProxyReconciler(around),
        queue,
        clock=base.clock,
        recorder=ReconcileRecorder(base.metrics),
        workers=pace.workers,
        expected=(ProviderError,),
    )
    base.manager.add(channel, elected=True)
    base.manager.add(controller, elected=True)


def _add_gc(base: Foundations, settings: Settings, fleet: Fleet) -> None:
    if settings.is_owner_hidden:
        logger.warning(
            "orphans are not collected: only one namespace is watched and"
            " --gc-allow-namespaced is not set",
            extra={"namespace": settings.watch_namespace},
        )
        return
    sweeper = OrphanSweeper(
        base.client,
        fleet.providers,
        base.events,
        base.clock,
        SweepRecorder(base.metrics),
        SweepSettings(
            cluster_id=base.cluster_id,
            interval=settings.gc.interval,
            min_age=settings.gc.min_age,
            is_dry_run=settings.gc.dry_run,
            namespace=None if settings.standalone else settings.watch_namespace,
        ),
    )
    base.manager.add(Part("orphan-gc", sweeper.run), elected=True)

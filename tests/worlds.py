"""A world for the proxy reconciler: real store semantics, a fake cloud, virtual time.

Passes are run by hand, so a test can stop between any two and look around.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Any

from proxy_operator.controllers.ports import SweepResult
from proxy_operator.controllers.proxy.context import Intervals, Ports, Surroundings
from proxy_operator.controllers.proxy.reconciler import ProxyReconciler
from proxy_operator.controllers.proxy.watches import REFERENCE_INDEX, secrets_of
from proxy_operator.domain.condition import Condition, ConditionType, find
from proxy_operator.domain.event import EventKind
from proxy_operator.domain.health import HealthReport
from proxy_operator.domain.instance import Intent, decode_intent
from proxy_operator.domain.names import INTENT_ANNOTATION, secret_fingerprint
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Credentials, Secret
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.credentials import MadeWith, SecretReader
from proxy_operator.provisioning.errors import EnvironmentProviderError
from proxy_operator.runtime.clock import LoopClock
from proxy_operator.runtime.informer import Informer
from proxy_operator.runtime.objects import ObjectClient, ObjectKey, ObjectList, key_of
from proxy_operator.runtime.reconciler import Result
from proxy_operator.runtime.store import StoreEvent
from proxy_operator.runtime.write_through import WriteThrough
from proxy_operator.testing.fake_objects import FakeObjectClient
from proxy_operator.testing.fake_provider import FakeProvider
from tests.builders import EPOCH, a_manifest

CLUSTER = "cluster-1"


class Verdicts:
    """The health engine's answers, as a test sets them."""

    def __init__(self) -> None:
        self.reports: dict[str, HealthReport] = {}
        self.is_without_target = False

    def report(self, uid: str) -> HealthReport | None:
        return self.reports.get(uid)

    def handle(self, event: StoreEvent[Proxy]) -> None:
        """Forget the verdict on an address that is no more, as the engine does."""
        old, new = event.old, event.new
        if old is not None and (new is None or new.address != old.address):
            self.reports.pop(old.metadata.uid, None)

    def has_target(self, proxy: Proxy) -> bool:
        return not self.is_without_target


class EventNotes:
    """Events in the order they were told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def record(self, proxy: Proxy, event: EventKind, message: str) -> None:
        self.told.append((proxy.metadata.name, event.reason, message))

    def reasons(self, name: str = "p1") -> list[str]:
        return [reason for who, reason, _ in self.told if who == name]


class SweepNotes:
    """What a sweeper tells of its work."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.sweeps: list[tuple[str, SweepResult, datetime]] = []
        self.deleted = 0
        self.left: list[int] = []

    def swept_from_now(self, provider: str) -> None:
        self.begun.append(provider)

    def swept(self, provider: str, result: SweepResult, at: datetime) -> None:
        self.sweeps.append((provider, result, at))

    def orphan_deleted(self, provider: str) -> None:
        self.deleted += 1

    def orphans_left(self, provider: str, count: int) -> None:
        self.left.append(count)

    def results(self) -> list[SweepResult]:
        return [result for _, result, _ in self.sweeps]


class InlineFingerprints:
    """Fingerprints without a thread, which would outrun virtual time."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes | None, str], str] = {}

    async def fingerprint(self, *, user_data: bytes | None, credentials: Credentials | None) -> str:
        key = (user_data, f"{credentials.username}:{credentials.password}" if credentials else "")
        if key not in self._known:
            self._known[key] = secret_fingerprint(
                user_data=user_data, credentials=credentials, salt=CLUSTER
            )
        return self._known[key]


class OneRegistry:
    """Every provider name leads to the same provider, unless it is missing."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.missing: str | None = None

    def get(self, name: str) -> Provider:
        if self.missing:
            raise EnvironmentProviderError(self.missing)
        return self.provider

    def available(self):
        if not self.missing:
            yield "fake", self.provider

    def unusable(self):
        if self.missing:
            yield "fake", EnvironmentProviderError(self.missing)


FINGERPRINTS = InlineFingerprints()


class World:
    """One operator's view of the world; `restart` gives it a new process."""

    def __init__(self, **provider: Any) -> None:
        self.clock = LoopClock(EPOCH)
        self.objects = FakeObjectClient(self.clock)
        self.client: ObjectClient = self.objects
        self.provider = FakeProvider(self.clock, cluster_id=CLUSTER, **provider)
        self.registry = OneRegistry(self.provider)
        self.health = Verdicts()
        self.events = EventNotes()
        self.sweeps = SweepNotes()
        self.intervals = Intervals()
        self.writes: list[str] = []
        self.made_with = MadeWith()
        self.cluster_id = CLUSTER

    async def restart(self) -> None:
        """Start a process: empty memory, caches listed anew."""
        self.informers: dict[type, Informer[Any]] = {
            Proxy: Informer(
                self.client, Proxy, clock=self.clock, indexers={REFERENCE_INDEX: secrets_of}
            ),
            Secret: Informer(self.client, Secret, clock=self.clock),
        }
        await self.sync()
        self.informers[Proxy].store.add_handler(self.health.handle)
        ports = Ports(
            proxies=self.informers[Proxy].store,
            secrets=SecretReader(self.informers[Secret].store, self.informers[Secret].store),
            client=WriteThrough(self.client, self.informers),
            providers=self.registry,
            health=self.health,
            events=self.events,
            fingerprints=FINGERPRINTS,
        )
        around = Surroundings(ports, self.clock, self.cluster_id, self.intervals)
        self.made_with = around.made_with
        self.informers[Proxy].store.add_handler(self.made_with.handle)
        self.reconciler = ProxyReconciler(around)

    async def sync(self) -> None:
        """Bring the caches to the present, as a watch would."""
        for kind, informer in self.informers.items():
            listing: ObjectList[Any] = await self.objects.list(kind)
            found = {key_of(o): o for o in listing.items}
            for key in [key_of(o) for o in informer.store.list()]:
                if key not in found:
                    informer.store.remove(key)
            for obj in found.values():
                informer.store.put(obj)

    async def apply(self, obj: Proxy | Secret) -> None:
        """Apply a manifest, as a user does."""
        await self.objects.apply(a_manifest(obj))
        await self.sync()

    async def delete(self, name: str = "p1", kind: type = Proxy) -> None:
        await self.objects.delete(kind, ObjectKey("default", name))
        await self.sync()

    async def one_pass(self, name: str = "p1") -> Result:
        return await self.reconciler.reconcile(ObjectKey("default", name))

    async def run(self, span: timedelta, name: str = "p1") -> list[Exception]:
        """Run passes for so long, each when the last one asked for it; return their errors.

        A failed pass is repeated after a second, a pass that wants none sleeps to the end.
        """
        errors: list[Exception] = []
        end = self.clock.now() + span
        while self.clock.now() < end:
            try:
                result = await self.one_pass(name)
                delay = result.requeue_after or span
            except Exception as err:  # noqa: BLE001 - any error is what a test looks at
                errors.append(err)
                delay = timedelta(seconds=1)
            left = end - self.clock.now()
            await sleep(min(delay, left))
        return errors

    async def proxy(self, name: str = "p1") -> Proxy:
        return await self.objects.get(Proxy, ObjectKey("default", name))

    async def names(self) -> list[str]:
        return sorted(p.metadata.name for p in (await self.objects.list(Proxy)).items)

    async def provisioned(self, name: str = "p1") -> Condition:
        row = find((await self.proxy(name)).status.conditions, ConditionType.PROVISIONED)
        assert row is not None
        return row

    async def healthy(self, name: str = "p1") -> Condition:
        row = find((await self.proxy(name)).status.conditions, ConditionType.HEALTHY)
        assert row is not None
        return row

    async def intent(self, name: str = "p1") -> Intent:
        found = decode_intent((await self.proxy(name)).metadata.annotations.get(INTENT_ANNOTATION))
        assert found is not None
        return found

    async def report(self, name: str = "p1", **fields: Any) -> None:
        """Let the health engine have a verdict."""
        fields.setdefault("is_healthy", True)
        fields.setdefault("latency_millis", 20 if fields["is_healthy"] else None)
        proxy = await self.proxy(name)
        self.health.reports[proxy.metadata.uid] = HealthReport(
            checked_at=self.clock.now(), **fields
        )


async def sleep(span: timedelta) -> None:
    """Let virtual time pass."""
    await asyncio.sleep(max(span.total_seconds(), 0))


async def a_world(*objects: Proxy | Secret, **provider: Any) -> World:
    """A started operator and applied manifests."""
    world = World(**provider)
    await world.restart()
    for obj in objects:
        await world.apply(obj)
    return world


async def a_running_world(*objects: Proxy | Secret, **provider: Any) -> World:
    """The same, long enough after for every instance to run, healthy."""
    world = await a_world(*objects, **provider)
    for obj in objects:
        if isinstance(obj, Proxy):
            await world.run(timedelta(minutes=1), obj.metadata.name)
            await world.report(obj.metadata.name)
            await world.one_pass(obj.metadata.name)
    return world

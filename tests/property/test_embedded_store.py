"""The embedded store against a dict: same answers, same errors, and a watch that adds up."""

import asyncio
import functools
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.object_store import SqliteObjectClient
from proxy_operator.domain.proxy import Phase, Proxy
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.errors import (
    AlreadyExistsError,
    ConflictError,
    ExpiredError,
    InvalidError,
    NotFoundError,
    ObjectError,
)
from proxy_operator.runtime.objects import (
    ApplyOutcome,
    MetadataPatch,
    ObjectKey,
    ObjectList,
    Preconditions,
    WatchEvent,
    WatchEventType,
    key_of,
)
from proxy_operator.testing.fake_objects import DecodingAdmission
from proxy_operator.testing.object_client_contract import a_manifest, a_proxy, with_status

HISTORY = 30
keys = st.builds(ObjectKey, st.sampled_from(["ns1", "ns2"]), st.sampled_from(["a", "b"]))
teams = st.sampled_from(["red", "blue", None])
finalizers = st.sampled_from([(), ("example.com/one",), ("example.com/one", "example.com/two")])
is_fresh = st.booleans()
SELECTORS: list[dict[str, Any]] = [
    {},
    {"namespace": "ns1"},
    {"labels": {"team": "red"}},
    {"namespace": "ns2", "labels": {"team": "blue"}},
]


class Model(NamedTuple):
    """What the dict remembers of an object."""

    uid: str
    version: str
    generation: int
    team: str | None
    finalizers: tuple[str, ...]
    is_deleting: bool
    max_leases: int | None
    phase: Phase | None


def model_of(proxy: Proxy) -> Model:
    meta = proxy.metadata
    return Model(
        meta.uid,
        meta.resource_version,
        meta.generation,
        meta.labels.get("team"),
        meta.finalizers,
        meta.is_deleting,
        proxy.spec.max_leases,
        proxy.status.phase,
    )


class Snapshot(NamedTuple):
    """A listing to which a watch is applied later."""

    selector: dict[str, Any]
    listed: ObjectList[Proxy]


class EmbeddedStore(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "store.sqlite3"
        self.databases = [Database(path, HISTORY) for _ in range(2)]
        self.clients = []
        for database in self.databases:
            self.runner.run(database.open(create=True))
            self.clients.append(SqliteObjectClient(database, DecodingAdmission(), SystemClock()))
        self.world: dict[ObjectKey, Model] = {}
        self.past: dict[ObjectKey, Proxy] = {}
        self.writes = 0
        self.version = 1
        self.snapshots: list[Snapshot] = []

    def teardown(self) -> None:
        for database in self.databases:
            self.runner.run(database.close())
        self.runner.close()
        self.folder.cleanup()

    @property
    def client(self) -> SqliteObjectClient:
        """Write through the one and the other in turn, as two processes would."""
        self.writes += 1
        return self.clients[self.writes % len(self.clients)]

    def attempt(self, call: Callable[[], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            return await call()

        try:
            return self.runner.run(run())
        except ObjectError as err:
            return type(err)

    def wrote(self, key: ObjectKey, stored: Any, expected: Model) -> None:
        """Check an answer against what the dict makes of the call, and remember it."""
        assert isinstance(stored, Proxy), stored
        self.version += 1
        found = model_of(stored)
        assert found == expected._replace(version=str(self.version))
        self.world[key] = found
        self.past.setdefault(key, stored)

    def seen(self, key: ObjectKey, *, fresh: bool) -> Preconditions:
        if fresh and key in self.world:
            return Preconditions(self.world[key].uid, self.world[key].version)
        if key in self.past:
            meta = self.past[key].metadata
            return Preconditions(meta.uid, meta.resource_version)
        return Preconditions("nobody", "1")

    def refusal(self, key: ObjectKey, seen: Preconditions) -> type[ObjectError] | None:
        if key not in self.world:
            return NotFoundError
        found = self.world[key]
        return None if (found.uid, found.version) == seen else ConflictError

    @rule(key=keys, team=teams, finalizers=finalizers)
    def create(self, key: ObjectKey, team: str | None, finalizers: tuple[str, ...]) -> None:
        labels = {"team": team} if team else {}
        proxy = a_proxy(*key, labels=labels, finalizers=finalizers)
        answer = self.attempt(lambda: self.client.create(proxy))
        if key in self.world:
            assert answer is AlreadyExistsError
            return
        uid = answer.metadata.uid
        assert all(uid != o.metadata.uid for o in self.past.values())
        self.wrote(key, answer, Model(uid, "", 1, team, finalizers, False, None, None))

    @rule(key=keys, max_leases=st.sampled_from([None, 1, 2]), team=teams)
    def apply(self, key: ObjectKey, max_leases: int | None, team: str | None) -> None:
        manifest = a_manifest(*key, attributes={"region": "eu"})
        if max_leases is not None:
            manifest["spec"]["maxLeases"] = max_leases
        manifest["metadata"]["labels"] = {"team": team} if team else {}
        answer = self.attempt(lambda: self.client.apply(manifest))
        old = self.world.get(key)
        if old is None:
            uid = answer.object.metadata.uid
            expected = Model(uid, "", 1, team, (), False, max_leases, None)
            assert answer.outcome is ApplyOutcome.CREATED
            self.wrote(key, answer.object, expected)
            return
        grown = old.generation + (old.max_leases != max_leases)
        expected = old._replace(team=team or old.team, max_leases=max_leases, generation=grown)
        if expected == old:
            assert answer.outcome is ApplyOutcome.UNCHANGED
            assert model_of(answer.object) == old
        else:
            assert answer.outcome is ApplyOutcome.CONFIGURED
            self.wrote(key, answer.object, expected)

    @rule(key=keys, phase=st.sampled_from(Phase), fresh=is_fresh)
    def patch_status(self, key: ObjectKey, phase: Phase, fresh: bool) -> None:
        seen = self.seen(key, fresh=fresh)
        draft = with_status(a_proxy(*key), phase)
        draft.metadata = msgspec.structs.replace(
            draft.metadata, uid=seen.uid, resource_version=seen.resource_version or ""
        )
        answer = self.attempt(lambda: self.client.patch_status(draft))
        if (expected := self.refusal(key, seen)) is not None:
            assert answer is expected
        elif self.world[key].phase is phase:
            assert model_of(answer) == self.world[key]
        else:
            self.wrote(key, answer, self.world[key]._replace(phase=phase))

    @rule(key=keys, team=teams, finalizers=st.none() | finalizers, fresh=is_fresh)
    def patch_metadata(
        self, key: ObjectKey, team: str | None, finalizers: tuple[str, ...] | None, fresh: bool
    ) -> None:
        seen = self.seen(key, fresh=fresh)
        patch = MetadataPatch({"team": team}, {}, finalizers)
        answer = self.attempt(lambda: self.client.patch_metadata(Proxy, key, seen, patch))
        if (refusal := self.refusal(key, seen)) is not None:
            assert answer is refusal
            return
        old = self.world[key]
        left = old.finalizers if finalizers is None else finalizers
        if old.is_deleting and set(left) - set(old.finalizers):
            assert answer is InvalidError
            return
        expected = old._replace(team=team, finalizers=left)
        if expected == old:
            assert model_of(answer) == old
            return
        self.wrote(key, answer, expected)
        if old.is_deleting and not left:
            del self.world[key]

    @rule(key=keys, seen_as=st.sampled_from(["any", "fresh", "stale"]))
    def delete(self, key: ObjectKey, seen_as: str) -> None:
        seen = None if seen_as == "any" else self.seen(key, fresh=seen_as == "fresh")
        answer = self.attempt(lambda: self.client.delete(Proxy, key, seen))
        refusal = self.refusal(key, seen) if seen else None if key in self.world else NotFoundError
        if refusal is not None:
            assert answer is refusal
            return
        assert answer is None
        old = self.world[key]
        if not old.finalizers:
            self.version += 1
            del self.world[key]
        elif not old.is_deleting:
            self.version += 1
            self.world[key] = old._replace(is_deleting=True, version=str(self.version))

    @rule(selector=st.sampled_from(SELECTORS))
    def take_snapshot(self, selector: dict[str, Any]) -> None:
        listed = self.attempt(lambda: self.client.list(Proxy, **selector))
        self.snapshots.append(Snapshot(selector, listed))

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        snapshot = data.draw(st.sampled_from(self.snapshots))
        namespace = snapshot.selector.get("namespace", "ns1")
        marker = a_proxy(namespace, "end", labels=snapshot.selector.get("labels", {}))
        marker = self.attempt(lambda: self.client.create(marker))
        self.version += 1
        events = self.attempt(lambda: self.events_until(marker, snapshot))
        behind = self.version - int(snapshot.listed.resource_version)
        if events is ExpiredError:
            assert behind > HISTORY
        else:
            world = {key_of(o): o for o in snapshot.listed.items}
            for event in events:
                apply_event(world, event)
            now = self.attempt(lambda: self.client.list(Proxy, **snapshot.selector))
            assert world == {key_of(o): o for o in now.items}
        assert self.attempt(lambda: self.client.delete(Proxy, key_of(marker))) is None
        self.version += 1

    async def events_until(self, marker: Proxy, snapshot: Snapshot) -> list[WatchEvent[Proxy]]:
        version = snapshot.listed.resource_version
        events: list[WatchEvent[Proxy]] = []
        async with aclosing(self.client.watch(Proxy, version, **snapshot.selector)) as stream:
            while not events or events[-1].object != marker:
                async with asyncio.timeout(10):
                    events.append(await anext(stream))
        return events

    @invariant()
    def listing_equals_the_dict(self) -> None:
        for client in self.clients:
            listed = self.attempt(functools.partial(client.list, Proxy))
            assert {key_of(o): model_of(o) for o in listed.items} == self.world
            assert listed.resource_version == str(self.version)


def apply_event(world: dict[ObjectKey, Proxy], event: WatchEvent[Proxy]) -> None:
    """Apply one event, insisting that it fits: nothing invented, nothing told twice."""
    assert event.object is not None
    key = key_of(event.object)
    match event.type:
        case WatchEventType.ADDED:
            assert key not in world
            world[key] = event.object
        case WatchEventType.MODIFIED:
            assert world[key].metadata.uid == event.object.metadata.uid
            world[key] = event.object
        case _:
            assert world[key].metadata.uid == event.object.metadata.uid
            del world[key]


EmbeddedStore.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestEmbeddedStore = EmbeddedStore.TestCase

"""What every `ObjectClient` promises, as a suite of tests.

Subclass it where tests are collected, with a `client` fixture. It runs against a real
kube-apiserver too: nothing here may ask for more than Kubernetes can do.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from proxy_operator.domain.condition import ConditionStatus, ConditionType, with_condition
from proxy_operator.domain.kinds import to_document
from proxy_operator.domain.meta import API_VERSION, ObjectMeta
from proxy_operator.domain.proxy import Endpoint, Mode, Phase, Proxy, ProxySpec
from proxy_operator.domain.secret import Secret
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
    ObjectClient,
    ObjectKey,
    Preconditions,
    WatchEvent,
    WatchEventType,
    key_of,
)

WAIT_SECONDS = 10.0
"""Bound on everything that takes time in a real home."""
FINALIZER = "crawl.example.com/contract"
OTHER_FINALIZER = "crawl.example.com/other"
SEEN_AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

Events = list[WatchEvent[Proxy]]


def a_proxy(namespace: str, name: str = "p1", **meta: object) -> Proxy:
    """Make a valid External proxy."""
    endpoint = Endpoint(host="192.0.2.1", port=3128)
    return Proxy(
        metadata=msgspec.convert({"name": name, "namespace": namespace, **meta}, ObjectMeta),
        spec=ProxySpec(mode=Mode.EXTERNAL, endpoint=endpoint, attributes={"region": "eu"}),
    )


def a_manifest(namespace: str, name: str = "p1", **spec: object) -> dict[str, Any]:
    """Write the manifest of a valid External proxy."""
    endpoint = {"host": "192.0.2.1", "port": 3128}
    return {
        "apiVersion": API_VERSION,
        "kind": "Proxy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"mode": "External", "endpoint": endpoint, **spec},
    }


def a_secret_manifest(namespace: str, **members: object) -> dict[str, Any]:
    """Write the manifest of a Secret with those members."""
    metadata = {"name": "s1", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **members}


def with_status(proxy: Proxy, phase: Phase = Phase.READY) -> Proxy:
    """Return a draft with a status of several fields."""
    draft = proxy.draft()
    draft.status.phase = phase
    draft.status.ip = "192.0.2.1"
    draft.status.port = 3128
    draft.status.conditions = with_condition(
        draft.status.conditions,
        ConditionType.HEALTHY,
        status=ConditionStatus.TRUE,
        reason="ProbeSucceeded",
        message="",
        observed_generation=proxy.metadata.generation,
        now=SEEN_AT,
    )
    return draft


def this_very(proxy: Proxy) -> Preconditions:
    """Preconditions that name this state of this object."""
    return Preconditions(proxy.metadata.uid, proxy.metadata.resource_version)


async def collect(stream: AsyncGenerator[WatchEvent[Proxy], None], *, until: str) -> Events:
    """Return the events, without bookmarks, up to the first one about the object `until`."""
    events: Events = []
    async with asyncio.timeout(WAIT_SECONDS), aclosing(stream):
        async for event in stream:
            if event.object is None:
                continue
            events.append(event)
            if event.object.metadata.name == until:
                break
    return events


def told(events: Events) -> list[tuple[str, str]]:
    """Return what happened to which object."""
    return [(e.type.value, e.object.metadata.name) for e in events if e.object is not None]


class ObjectClientContract:
    """Needs a fixture `client`; `namespace` may be overridden where it must be made first."""

    @pytest.fixture
    def namespace(self) -> str:
        return f"contract-{uuid.uuid4().hex[:8]}"

    async def forget_history(self, client: ObjectClient, namespace: str) -> None:
        """Make every resource version handed out so far too old; skip where that cannot be."""
        pytest.skip(f"{type(client).__name__} cannot be made to forget {namespace}")

    # get and list

    async def test_get_of_a_missing_object(self, client: ObjectClient, namespace: str) -> None:
        with pytest.raises(NotFoundError):
            await client.get(Proxy, ObjectKey(namespace, "p1"))

    async def test_list_of_a_namespace(self, client: ObjectClient, namespace: str) -> None:
        for name in ("p2", "p1"):
            await client.create(a_proxy(namespace, name))
        await client.apply(a_secret_manifest(namespace, stringData={"k": "v"}))
        found = await client.list(Proxy, namespace=namespace)
        assert [o.metadata.name for o in found.items] == ["p1", "p2"]
        everything = await client.list(Proxy)
        assert {key_of(o) for o in found.items} <= {key_of(o) for o in everything.items}

    async def test_list_by_labels_wants_all_of_them(
        self, client: ObjectClient, namespace: str
    ) -> None:
        await client.create(a_proxy(namespace, "p1", labels={"a": "1", "b": "2"}))
        await client.create(a_proxy(namespace, "p2", labels={"a": "1"}))
        await client.create(a_proxy(namespace, "p3"))
        found = await client.list(Proxy, namespace=namespace, labels={"a": "1", "b": "2"})
        assert [o.metadata.name for o in found.items] == ["p1"]

    # create

    async def test_create_fills_in_what_the_home_owns(
        self, client: ObjectClient, namespace: str
    ) -> None:
        given = a_proxy(namespace, labels={"a": "1"}, annotations={"b": "2"})
        made = await client.create(given)
        meta = made.metadata
        assert str(uuid.UUID(meta.uid)) == meta.uid
        assert meta.resource_version
        assert meta.generation == 1
        assert meta.creation_timestamp is not None
        assert meta.creation_timestamp.microsecond == 0
        assert (meta.labels, meta.annotations) == ({"a": "1"}, {"b": "2"})
        assert made.spec == given.spec
        assert await client.get(Proxy, key_of(made)) == made

    async def test_create_takes_no_status(self, client: ObjectClient, namespace: str) -> None:
        made = await client.create(with_status(a_proxy(namespace)))
        assert made.status.phase is None
        assert made.status.conditions == ()

    async def test_create_of_an_existing_name(self, client: ObjectClient, namespace: str) -> None:
        made = await client.create(a_proxy(namespace))
        with pytest.raises(AlreadyExistsError):
            await client.create(a_proxy(namespace))
        assert await client.get(Proxy, key_of(made)) == made

    async def test_create_of_an_invalid_object(self, client: ObjectClient, namespace: str) -> None:
        wrong = a_proxy(namespace)
        wrong.spec = msgspec.structs.replace(wrong.spec, endpoint=Endpoint(host="h", port=70000))
        with pytest.raises(InvalidError) as caught:
            await client.create(wrong)
        assert [e.field for e in caught.value.errors] == ["spec.endpoint.port"]
        with pytest.raises(NotFoundError):
            await client.get(Proxy, key_of(wrong))

    async def test_of_many_creates_one_wins(self, client: ObjectClient, namespace: str) -> None:
        answers = await asyncio.gather(
            *(client.create(a_proxy(namespace)) for _ in range(8)), return_exceptions=True
        )
        assert sum(isinstance(a, Proxy) for a in answers) == 1
        assert sum(isinstance(a, AlreadyExistsError) for a in answers) == 7

    async def test_a_successor_has_another_uid(self, client: ObjectClient, namespace: str) -> None:
        first = await client.create(a_proxy(namespace))
        await client.delete(Proxy, key_of(first))
        second = await client.create(a_proxy(namespace))
        assert second.metadata.uid != first.metadata.uid
        with pytest.raises(ConflictError):
            await client.patch_status(with_status(first))
        with pytest.raises(ConflictError):
            await client.patch_metadata(
                Proxy, key_of(first), Preconditions(first.metadata.uid), MetadataPatch({"a": "1"})
            )
        assert await client.get(Proxy, key_of(first)) == second

    # patch_metadata

    async def test_patch_metadata_merges_and_removes(
        self, client: ObjectClient, namespace: str
    ) -> None:
        made = await client.create(
            a_proxy(namespace, labels={"a": "1", "b": "2"}, annotations={"c": "3", "d": "4"})
        )
        patch = MetadataPatch(
            labels={"a": None, "b": "5"}, annotations={"c": None, "e": "6"}, finalizers=[FINALIZER]
        )
        patched = await client.patch_metadata(Proxy, key_of(made), this_very(made), patch)
        assert patched.metadata.labels == {"b": "5"}
        assert patched.metadata.annotations == {"d": "4", "e": "6"}
        assert patched.metadata.finalizers == (FINALIZER,)
        assert patched.metadata.generation == made.metadata.generation
        assert patched.metadata.resource_version != made.metadata.resource_version
        assert patched.spec == made.spec
        assert await client.get(Proxy, key_of(made)) == patched

    async def test_patch_metadata_that_changes_nothing_is_no_write(
        self, client: ObjectClient, namespace: str
    ) -> None:
        made = await client.create(a_proxy(namespace, labels={"a": "1"}, finalizers=(FINALIZER,)))
        patch = MetadataPatch({"a": "1", "x": None}, {"y": None}, [FINALIZER])
        assert await client.patch_metadata(Proxy, key_of(made), this_very(made), patch) == made
        assert await client.get(Proxy, key_of(made)) == made

    async def test_patch_metadata_of_a_changed_object(
        self, client: ObjectClient, namespace: str
    ) -> None:
        made = await client.create(a_proxy(namespace))
        await client.patch_status(with_status(made))
        patch = MetadataPatch({"a": "1"})
        with pytest.raises(ConflictError):
            await client.patch_metadata(Proxy, key_of(made), this_very(made), patch)
        any_version = Preconditions(made.metadata.uid)
        patched = await client.patch_metadata(Proxy, key_of(made), any_version, patch)
        assert patched.metadata.labels == {"a": "1"}
        assert patched.status.phase is Phase.READY

    async def test_patch_metadata_of_a_missing_object(
        self, client: ObjectClient, namespace: str
    ) -> None:
        key = ObjectKey(namespace, "p1")
        with pytest.raises(NotFoundError):
            await client.patch_metadata(
                Proxy, key, Preconditions(str(uuid.uuid4())), MetadataPatch({"a": "1"})
            )

    # patch_status

    async def test_patch_status_changes_the_status_only(
        self, client: ObjectClient, namespace: str
    ) -> None:
        made = await client.create(a_proxy(namespace))
        draft = with_status(made)
        draft.spec = msgspec.structs.replace(made.spec, attributes={"region": "us"})
        written = await client.patch_status(draft)
        assert written.spec == made.spec
        assert written.metadata.generation == made.metadata.generation
        assert written.metadata.resource_version != made.metadata.resource_version
        assert (written.status.phase, written.status.ip) == (Phase.READY, "192.0.2.1")
        assert await client.get(Proxy, key_of(made)) == written

    async def test_patch_status_keeps_whole_seconds(
        self, client: ObjectClient, namespace: str
    ) -> None:
        made = await client.create(a_proxy(namespace))
        written = await client.patch_status(with_status(made))
        (row,) = written.status.conditions
        assert row.last_transition_at == SEEN_AT.replace(microsecond=0)

    async def test_patch_status_removes_what_is_no_more(
        self, client: ObjectClient, namespace: str
    ) -> None:
        made = await client.patch_status(with_status(await client.create(a_proxy(namespace))))
        draft = made.draft()
        draft.status.ip, draft.status.port, draft.status.conditions = None, None, ()
        written = await client.patch_status(draft)
        assert written.status == draft.status

    async def test_patch_status_that_changes_nothing_is_no_write(
        self, client: ObjectClient, namespace: str
    ) -> None:
        made = await client.patch_status(with_status(await client.create(a_proxy(namespace))))
        assert await client.patch_status(made.draft()) == made
        assert await client.get(Proxy, key_of(made)) == made

    async def test_patch_status_of_a_changed_or_missing_object(
        self, client: ObjectClient, namespace: str
    ) -> None:
        made = await client.create(a_proxy(namespace))
        await client.apply(a_manifest(namespace, attributes={"region": "us"}))
        with pytest.raises(ConflictError):
            await client.patch_status(with_status(made))
        assert (await client.get(Proxy, key_of(made))).status.phase is None
        await client.delete(Proxy, key_of(made))
        with pytest.raises(NotFoundError):
            await client.patch_status(with_status(made))

    async def test_of_many_writers_of_one_version_one_wins(
        self, client: ObjectClient, namespace: str
    ) -> None:
        made = await client.create(a_proxy(namespace))
        phases = [*Phase]
        answers = await asyncio.gather(
            *(client.patch_status(with_status(made, phase)) for phase in phases),
            return_exceptions=True,
        )
        (winner,) = [a for a in answers if isinstance(a, Proxy)]
        assert sum(isinstance(a, ConflictError) for a in answers) == len(phases) - 1
        assert await client.get(Proxy, key_of(made)) == winner

    async def test_no_update_is_lost(self, client: ObjectClient, namespace: str) -> None:
        key = key_of(await client.create(a_proxy(namespace, annotations={"count": "0"})))

        async def count() -> None:
            for _ in range(3):
                while True:
                    now = await client.get(Proxy, key)
                    more = str(int(now.metadata.annotations["count"]) + 1)
                    try:
                        await client.patch_metadata(
                            Proxy, key, this_very(now), MetadataPatch(annotations={"count": more})
                        )
                    except ConflictError:
                        continue
                    break

        async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as tasks:
            for _ in range(4):
                tasks.create_task(count())
        assert (await client.get(Proxy, key)).metadata.annotations["count"] == "12"

    # apply

    async def test_apply_creates_then_finds_nothing_to_do(
        self, client: ObjectClient, namespace: str
    ) -> None:
        manifest = a_manifest(namespace, attributes={"region": "eu"})
        first = await client.apply(manifest)
        assert first.outcome is ApplyOutcome.CREATED
        assert first.object.metadata.generation == 1
        again = await client.apply(manifest)
        assert again == (first.object, ApplyOutcome.UNCHANGED)

    async def test_apply_replaces_the_spec(self, client: ObjectClient, namespace: str) -> None:
        await client.apply(
            a_manifest(namespace, maxLeases=3, attributes={"region": "eu", "a": "1"})
        )
        changed = await client.apply(a_manifest(namespace, attributes={"region": "us"}))
        assert changed.outcome is ApplyOutcome.CONFIGURED
        now = await client.get(Proxy, ObjectKey(namespace, "p1"))
        assert now == changed.object
        assert now.spec.max_leases is None
        assert now.spec.attributes == {"region": "us"}
        assert now.metadata.generation == 2

    async def test_apply_merges_labels_and_annotations(
        self, client: ObjectClient, namespace: str
    ) -> None:
        manifest = a_manifest(namespace)
        manifest["metadata"] |= {"labels": {"a": "1", "b": "2"}, "annotations": {"c": "3"}}
        await client.apply(manifest)
        manifest["metadata"] |= {"labels": {"b": "4"}, "annotations": {"d": "5"}}
        changed = await client.apply(manifest)
        assert changed.outcome is ApplyOutcome.CONFIGURED
        meta = changed.object.metadata
        assert meta.labels == {"a": "1", "b": "4"}
        assert meta.annotations == {"c": "3", "d": "5"}
        assert meta.generation == 1

    async def test_apply_leaves_status_and_finalizers(
        self, client: ObjectClient, namespace: str
    ) -> None:
        made = await client.create(a_proxy(namespace, finalizers=(FINALIZER,)))
        written = await client.patch_status(with_status(made))
        await client.apply(a_manifest(namespace, maxLeases=1))
        now = await client.get(Proxy, key_of(made))
        assert now.status == written.status
        assert now.metadata.finalizers == (FINALIZER,)
        assert now.metadata.uid == made.metadata.uid

    async def test_apply_of_what_was_read_is_no_change(
        self, client: ObjectClient, namespace: str
    ) -> None:
        made = await client.create(a_proxy(namespace))
        exported = to_document(made)
        exported["metadata"]["namespace"] = namespace
        written = await client.patch_status(with_status(made))
        assert await client.apply(exported) == (written, ApplyOutcome.UNCHANGED)

    async def test_apply_of_an_invalid_manifest(self, client: ObjectClient, namespace: str) -> None:
        made = (await client.apply(a_manifest(namespace))).object
        with pytest.raises(InvalidError) as caught:
            await client.apply(a_manifest(namespace, maxLeases=-1))
        assert [e.field for e in caught.value.errors] == ["spec.maxLeases"]
        assert await client.get(Proxy, ObjectKey(namespace, "p1")) == made

    async def test_apply_of_a_secret(self, client: ObjectClient, namespace: str) -> None:
        key = ObjectKey(namespace, "s1")
        first = await client.apply(
            a_secret_manifest(
                namespace, data={"a": "b25l", "b": "dHdv"}, stringData={"b": "zwei", "c": "ü"}
            )
        )
        assert first.outcome is ApplyOutcome.CREATED
        stored = await client.get(Secret, key)
        assert stored.data == {"a": b"one", "b": b"zwei", "c": "ü".encode()}
        assert stored.type == "Opaque"
        assert stored == first.object
        second = await client.apply(a_secret_manifest(namespace, stringData={"a": "uno"}))
        assert second.outcome is ApplyOutcome.CONFIGURED
        assert (await client.get(Secret, key)).data == {"a": b"uno"}
        third = await client.apply(a_secret_manifest(namespace, data={"a": "dW5v"}))
        assert third == (second.object, ApplyOutcome.UNCHANGED)

    # delete

    async def test_delete_removes(self, client: ObjectClient, namespace: str) -> None:
        key = key_of(await client.create(a_proxy(namespace)))
        await client.delete(Proxy, key)
        with pytest.raises(NotFoundError):
            await client.get(Proxy, key)
        with pytest.raises(NotFoundError):
            await client.delete(Proxy, key)

    async def test_delete_waits_for_the_finalizers(
        self, client: ObjectClient, namespace: str
    ) -> None:
        made = await client.create(a_proxy(namespace, finalizers=(FINALIZER, OTHER_FINALIZER)))
        key = key_of(made)
        await client.delete(Proxy, key)
        marked = await client.get(Proxy, key)
        assert marked.metadata.deletion_timestamp is not None
        assert marked.metadata.deletion_timestamp.microsecond == 0
        await client.delete(Proxy, key)
        assert await client.get(Proxy, key) == marked
        one_left = await client.patch_metadata(
            Proxy, key, this_very(marked), MetadataPatch(finalizers=[FINALIZER])
        )
        assert one_left.metadata.finalizers == (FINALIZER,)
        last = await client.patch_metadata(
            Proxy, key, this_very(one_left), MetadataPatch(finalizers=[])
        )
        assert last.metadata.uid == made.metadata.uid
        assert last.metadata.is_deleting
        with pytest.raises(NotFoundError):
            await client.get(Proxy, key)

    async def test_a_deleting_object_still_takes_writes(
        self, client: ObjectClient, namespace: str
    ) -> None:
        made = await client.create(a_proxy(namespace, finalizers=(FINALIZER,)))
        await client.delete(Proxy, key_of(made))
        marked = await client.get(Proxy, key_of(made))
        written = await client.patch_status(with_status(marked, Phase.DELETING))
        assert written.status.phase is Phase.DELETING
        patch = MetadataPatch({"a": "1"})
        patched = await client.patch_metadata(Proxy, key_of(made), this_very(written), patch)
        assert patched.metadata.labels == {"a": "1"}
        assert patched.metadata.deletion_timestamp == marked.metadata.deletion_timestamp

    async def test_a_deleting_object_takes_no_new_finalizer(
        self, client: ObjectClient, namespace: str
    ) -> None:
        made = await client.create(a_proxy(namespace, finalizers=(FINALIZER,)))
        await client.delete(Proxy, key_of(made))
        marked = await client.get(Proxy, key_of(made))
        patch = MetadataPatch(finalizers=[FINALIZER, OTHER_FINALIZER])
        with pytest.raises(InvalidError):
            await client.patch_metadata(Proxy, key_of(made), this_very(marked), patch)
        assert await client.get(Proxy, key_of(made)) == marked

    async def test_delete_of_another_object_or_version(
        self, client: ObjectClient, namespace: str
    ) -> None:
        made = await client.create(a_proxy(namespace))
        key = key_of(made)
        with pytest.raises(ConflictError):
            await client.delete(Proxy, key, Preconditions(str(uuid.uuid4())))
        written = await client.patch_status(with_status(made))
        with pytest.raises(ConflictError):
            await client.delete(Proxy, key, this_very(made))
        assert await client.get(Proxy, key) == written
        await client.delete(Proxy, key, this_very(written))
        with pytest.raises(NotFoundError):
            await client.get(Proxy, key)

    # watch

    async def test_watch_replays_what_happened_since_the_list(
        self, client: ObjectClient, namespace: str
    ) -> None:
        await client.create(a_proxy(namespace, "before"))
        listed = await client.list(Proxy, namespace=namespace)
        made = await client.create(a_proxy(namespace, "p1"))
        written = await client.patch_status(with_status(made))
        await client.patch_status(written.draft())
        await client.delete(Proxy, key_of(made))
        await client.create(a_proxy(namespace, "end"))
        stream = client.watch(Proxy, listed.resource_version, namespace=namespace)
        events = await collect(stream, until="end")
        assert told(events) == [
            ("ADDED", "p1"),
            ("MODIFIED", "p1"),
            ("DELETED", "p1"),
            ("ADDED", "end"),
        ]
        assert [e.object for e in events[:2]] == [made, written]
        assert events[2].object is not None
        assert events[2].object.status == written.status
        assert all(
            e.object and e.object.metadata.resource_version == e.resource_version for e in events
        )

    async def test_watch_from_an_event_tells_the_rest(
        self, client: ObjectClient, namespace: str
    ) -> None:
        listed = await client.list(Proxy, namespace=namespace)
        for name in ("p1", "p2", "end"):
            await client.create(a_proxy(namespace, name))
        stream = client.watch(Proxy, listed.resource_version, namespace=namespace)
        (first,) = await collect(stream, until="p1")
        stream = client.watch(Proxy, first.resource_version, namespace=namespace)
        assert told(await collect(stream, until="end")) == [("ADDED", "p2"), ("ADDED", "end")]

    async def test_watchers_learn_of_writes_as_they_happen(
        self, client: ObjectClient, namespace: str
    ) -> None:
        listed = await client.list(Proxy, namespace=namespace)
        async with asyncio.TaskGroup() as tasks:
            watching = [
                tasks.create_task(
                    collect(
                        client.watch(Proxy, listed.resource_version, namespace=namespace),
                        until="end",
                    )
                )
                for _ in range(3)
            ]
            await asyncio.sleep(0.2)
            made = await client.create(a_proxy(namespace, "p1"))
            await client.patch_status(with_status(made))
            await client.create(a_proxy(namespace, "end"))
        expected = [("ADDED", "p1"), ("MODIFIED", "p1"), ("ADDED", "end")]
        assert [told(w.result()) for w in watching] == [expected] * 3

    async def test_watch_is_of_one_kind_and_namespace(
        self, client: ObjectClient, namespace: str
    ) -> None:
        listed = await client.list(Proxy, namespace=namespace)
        await client.apply(a_secret_manifest(namespace, stringData={"k": "v"}))
        await client.create(a_proxy("default", f"other-{namespace}"))
        await client.create(a_proxy(namespace, "end"))
        stream = client.watch(Proxy, listed.resource_version, namespace=namespace)
        assert told(await collect(stream, until="end")) == [("ADDED", "end")]
        await client.delete(Proxy, ObjectKey("default", f"other-{namespace}"))

    async def test_watch_by_labels_tells_who_comes_and_goes(
        self, client: ObjectClient, namespace: str
    ) -> None:
        wanted = {"team": "a"}
        listed = await client.list(Proxy, namespace=namespace, labels=wanted)
        made = await client.create(a_proxy(namespace, "p1"))
        label = made.metadata.uid

        async def relabel(team: str, note: str) -> Proxy:
            patch = MetadataPatch({"team": team}, {"note": note})
            return await client.patch_metadata(Proxy, key_of(made), Preconditions(label), patch)

        await relabel("a", "one")
        matching = await relabel("a", "two")
        await relabel("b", "three")
        await relabel("c", "four")
        await client.delete(Proxy, key_of(made))
        await client.create(a_proxy(namespace, "end", labels=wanted))
        stream = client.watch(Proxy, listed.resource_version, namespace=namespace, labels=wanted)
        events = await collect(stream, until="end")
        assert told(events) == [
            ("ADDED", "p1"),
            ("MODIFIED", "p1"),
            ("DELETED", "p1"),
            ("ADDED", "end"),
        ]
        gone = events[2].object
        assert gone is not None
        assert gone.metadata.labels == matching.metadata.labels
        assert gone.metadata.annotations == {"note": "two"}

    async def test_events_of_a_watch_lead_from_one_list_to_the_next(
        self, client: ObjectClient, namespace: str
    ) -> None:
        for number in range(4):
            await client.create(a_proxy(namespace, f"p{number}", finalizers=(FINALIZER,)))
        first = await client.list(Proxy, namespace=namespace)
        world = {key_of(o): o for o in first.items}
        await client.delete(Proxy, ObjectKey(namespace, "p0"))
        await client.delete(Proxy, ObjectKey(namespace, "p1"))
        marked = await client.get(Proxy, ObjectKey(namespace, "p1"))
        await client.patch_metadata(
            Proxy, key_of(marked), this_very(marked), MetadataPatch(finalizers=[])
        )
        await client.patch_status(with_status(world[ObjectKey(namespace, "p2")]))
        await client.create(a_proxy(namespace, "end"))
        stream = client.watch(Proxy, first.resource_version, namespace=namespace)
        for event in await collect(stream, until="end"):
            assert event.object is not None
            if event.type is WatchEventType.DELETED:
                del world[key_of(event.object)]
            else:
                world[key_of(event.object)] = event.object
        second = await client.list(Proxy, namespace=namespace)
        assert world == {key_of(o): o for o in second.items}

    async def test_a_forgotten_version_is_expired(
        self, client: ObjectClient, namespace: str
    ) -> None:
        listed = await client.list(Proxy, namespace=namespace)
        await self.forget_history(client, namespace)
        with pytest.raises(ExpiredError):
            await collect(
                client.watch(Proxy, listed.resource_version, namespace=namespace), until="end"
            )

    async def test_every_error_is_one_of_the_port(
        self, client: ObjectClient, namespace: str
    ) -> None:
        with pytest.raises(ObjectError):
            await client.apply({"kind": "Proxy", "metadata": {"namespace": namespace}})

"""Faults to plant into the operator: the simulation is worth what it finds of these.

Each is a context in which one safeguard is missing.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from typing import Any, Final
from unittest.mock import patch

from proxy_operator.adapters.providers.gcp import manifests, states
from proxy_operator.adapters.providers.gcp import provider as gcp
from proxy_operator.adapters.providers.gcp.breaker import Breaker
from proxy_operator.adapters.providers.gcp.listing import SharedListing
from proxy_operator.controllers.orphan_gc import plan as gc_plan
from proxy_operator.controllers.proxy import finalize, follow, provision, refusal, retry
from proxy_operator.controllers.proxy.context import Pass
from proxy_operator.domain.instance import Intent
from proxy_operator.domain.names import CLUSTER_LABEL, UID_LABEL
from proxy_operator.provisioning.contract import InstanceList
from proxy_operator.provisioning.errors import InstanceNotFoundError
from proxy_operator.provisioning.fence import FencedProvider
from tests.simulation.border import Leadership


@contextmanager
def no_ownership_check() -> Iterator[None]:
    """Whatever carries a UID is taken for ours, in lists and before a delete."""

    async def lists_all(self: gcp.GcpProvider) -> InstanceList:
        found = await self._api.list(UID_LABEL, None)
        for document in found.items:
            document["labels"][CLUSTER_LABEL] = self._cluster_id
        return InstanceList(tuple(states.instance_of(d) for d in found.items), found.complete)

    async def deletes_all(self: gcp.GcpProvider, provider_id: str) -> None:
        where = manifests.parse_provider_id(provider_id)
        if where is not None:
            await self._api.delete(*where)

    with (
        patch.object(gcp.GcpProvider, "_list", lists_all),
        patch.object(gcp.GcpProvider, "delete", deletes_all),
    ):
        yield


@contextmanager
def finalizer_dropped_early() -> Iterator[None]:
    """The finalizer goes once the delete was sent."""
    real = finalize._delete_all

    async def sent(*args: Any) -> bool:
        await real(*args)
        return False

    with patch.object(finalize, "_delete_all", sent):
        yield


@contextmanager
def min_age_ignored() -> Iterator[None]:
    """An orphan is killed however young it is."""
    real = gc_plan._is_killable

    def killable(instance: Any, grounds: gc_plan.Grounds) -> bool:
        return real(instance, grounds._replace(min_age=timedelta(0)))

    with patch.object(gc_plan, "_is_killable", killable):
        yield


@contextmanager
def no_backoff() -> Iterator[None]:
    """Whoever found no room tries again within a second."""
    with ExitStack() as stack:
        for module, name in ((provision, "retry_at"), (follow, "appear_backoff")):
            answer = None if name == "retry_at" else timedelta(seconds=1)
            stack.enter_context(patch.object(module, name, lambda *_, a=answer: a))
        stack.enter_context(patch.object(refusal, "appear_backoff", lambda _: timedelta(seconds=1)))
        stack.enter_context(patch.object(Breaker, "refusal", lambda *_: None))
        yield


@contextmanager
def constant_request_id() -> Iterator[None]:
    """Every create has the same request id."""
    fixed = uuid.UUID("00000000-0000-4000-8000-000000000001")

    class Same:
        @staticmethod
        def uuid4() -> uuid.UUID:
            return fixed

    with patch.object(retry, "uuid", Same):
        yield


@contextmanager
def request_id_never_renewed() -> Iterator[None]:
    """A Proxy has one request id for all its creates: a dead operation is replayed."""

    def the_first(intent: Intent | None, *_: Any) -> str:
        return intent.request_id if intent is not None else str(uuid.uuid4())

    with patch.object(provision, "request_id_of", the_first):
        yield


@contextmanager
def intent_written_after_the_create() -> Iterator[None]:
    """The intent is stored when the create has been answered."""
    real_create, real_record = provision._create, Pass.record_intent
    held: dict[int, Any] = {}

    class Late:
        def __init__(self, p: Pass, provider: Any) -> None:
            self._p, self._provider = p, provider

        def __getattr__(self, name: str) -> Any:
            return getattr(self._provider, name)

        async def create(self, request: Any) -> str:
            made: str = await self._provider.create(request)
            await real_record(self._p, held.pop(id(self._p)))
            return made

    async def hold(self: Pass, intent: Any) -> None:
        if held.get(id(self), ...) is None:
            held[id(self)] = intent
        else:
            await real_record(self, intent)

    async def create(p: Pass, provider: Any, inputs: Any, old: Any) -> Any:
        held[id(p)] = None
        try:
            return await real_create(p, Late(p, provider), inputs, old)
        finally:
            held.pop(id(p), None)

    with patch.object(Pass, "record_intent", hold), patch.object(provision, "_create", create):
        yield


@contextmanager
def incomplete_list_taken_as_complete() -> Iterator[None]:
    """What a list does not show is taken for gone although a zone did not answer."""
    real_get, real_renew = gcp.GcpProvider.get, SharedListing.renew
    shown: dict[int, set[str]] = {}

    async def renew(self: SharedListing) -> InstanceList:
        found = await real_renew(self)
        shown.pop(id(self), None)
        if not found.complete:
            shown[id(self)] = {one.provider_id for one in found.items}
        return found

    async def get(self: gcp.GcpProvider, provider_id: str) -> Any:
        listing = self._listing
        await listing.running(provider_id)
        touched = listing._touched.get(provider_id, float("-inf"))
        is_newer = listing._started_at > touched
        if is_newer and provider_id not in shown.get(id(listing), {provider_id}):
            raise InstanceNotFoundError(f"there is no instance {provider_id}")
        return await real_get(self, provider_id)

    with (
        patch.object(SharedListing, "renew", renew),
        patch.object(gcp.GcpProvider, "get", get),
    ):
        yield


@contextmanager
def fence_removed() -> Iterator[None]:
    """A process that no longer leads goes on changing instances."""

    async def around(self: FencedProvider, op: str, call: Any) -> Any:
        return await call()

    with patch.object(FencedProvider, "around", around), patch.object(Leadership, "check"):
        yield


PLANTED: Final[dict[str, Callable[[], AbstractContextManager[None]]]] = {
    plant.__name__: plant
    for plant in (
        no_ownership_check,
        finalizer_dropped_early,
        min_age_ignored,
        no_backoff,
        constant_request_id,
        request_id_never_renewed,
        intent_written_after_the_create,
        incomplete_list_taken_as_complete,
        fence_removed,
    )
}

"""What `down` says when it cannot stand for election, and what it leaves."""

from datetime import timedelta

import pytest

from proxy_operator.adapters.kube.resources import NAMESPACE, Document, Resource
from proxy_operator.app.cluster import leave_no_lease, lock_obstacle, own_id_within
from proxy_operator.runtime.clock import LoopClock, SystemClock
from proxy_operator.runtime.election import LockRecord, StoredRecord
from proxy_operator.runtime.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    ObjectError,
    UnavailableError,
)
from proxy_operator.runtime.objects import ObjectKey
from tests.builders import EPOCH


class Answering:
    """A cluster with one answer, about one namespace."""

    def __init__(self, answer: Document | ObjectError) -> None:
        self._answer = answer

    async def get(self, resource: Resource, key: ObjectKey) -> Document:
        assert (resource, key) == (NAMESPACE, ObjectKey("", "ops"))
        if isinstance(self._answer, ObjectError):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (NotFoundError("no"), "namespace ops does not exist"),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "namespace ops is on its"),
    ],
)
async def test_a_namespace_that_takes_no_lease_is_named(answer, said):
    text = await lock_obstacle(Answering(answer), "ops")
    assert text is not None
    assert text.startswith(said)
    assert "--leader-namespace" in text


@pytest.mark.parametrize("answer", [{"metadata": {}}, ForbiddenError("no")])
async def test_nothing_is_said_where_nothing_is_known_to_be_wrong(answer):
    assert await lock_obstacle(Answering(answer), "ops") is None


LEFT = StoredRecord(LockRecord(), {})


class Lock:
    """A Lease whose removal ends so."""

    def __init__(self, failure: ObjectError | None) -> None:
        self.failure = failure
        self.asked: list[StoredRecord] = []

    async def delete(self, stored: StoredRecord) -> None:
        self.asked.append(stored)
        if self.failure:
            raise self.failure


class Told:
    """Who is told, and what."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def live(self, text: str) -> None:
        raise AssertionError(text)


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (None, []),
        (ConflictError("another operator holds it"), []),
        (NotFoundError("gone"), []),
        (ForbiddenError("no rights"), ["the operators' Lease is left: no rights"]),
        (UnavailableError("503"), ["the operators' Lease is left: 503"]),
    ],
)
async def test_a_lease_that_is_left_is_said(failure, said):
    lock, told = Lock(failure), Told()
    await leave_no_lease(lock, LEFT, told)
    assert (lock.asked, told.lines) == ([LEFT], said)


async def test_a_lease_that_was_never_ours_is_left_alone():
    lock, told = Lock(None), Told()
    await leave_no_lease(lock, None, told)
    assert (lock.asked, told.lines) == ([], [])


class Away:
    """An API server that is away for so many asks."""

    def __init__(self, times: int) -> None:
        self.times = times

    async def get(self, resource: Resource, key: ObjectKey) -> Document:
        self.times -= 1
        if self.times >= 0:
            raise UnavailableError("connection refused")
        return {"metadata": {"uid": "uid-1"}}


@pytest.mark.looptime(start=0, noop_cycles=3)
async def test_an_api_server_that_is_away_is_waited_for_but_not_for_ever():
    clock, patience = LoopClock(EPOCH), timedelta(seconds=100)
    assert await own_id_within(Away(10), patience, clock) == "uid-1"
    began = clock.monotonic()
    with pytest.raises(UnavailableError, match="connection refused"):
        await own_id_within(Away(10**6), patience, clock)
    assert 100 <= clock.monotonic() - began < 110


async def test_without_patience_an_api_server_is_asked_once():
    away = Away(2)
    with pytest.raises(UnavailableError):
        await own_id_within(away, timedelta(0), SystemClock())
    assert away.times == 1

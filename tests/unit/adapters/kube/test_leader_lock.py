import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from proxy_operator.adapters.kube.client import Request
from proxy_operator.adapters.kube.leader_lock import LeaderLock
from proxy_operator.runtime.election import LockRecord, StoredRecord
from proxy_operator.runtime.errors import UnavailableError
from proxy_operator.runtime.objects import ObjectKey

COLLECTION = "/apis/coordination.k8s.io/v1/namespaces/crawl/leases"
LEASE: dict[str, Any] = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {
        "name": "operator",
        "namespace": "crawl",
        "resourceVersion": "17",
        "uid": "u1",
        "labels": {"team": "a"},
        "ownerReferences": [{"name": "x"}],
    },
    "spec": {
        "holderIdentity": "host_1",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:02.500000Z",
        "leaseTransitions": 3,
        "strategy": "OldestEmulationVersion",
    },
}
RECORD = LockRecord(
    "host_1",
    timedelta(seconds=15),
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 1, 0, 0, 2, 500000, tzinfo=UTC),
    3,
)


class Api:
    """Answers every request with the same body."""

    def __init__(self, answer: bytes = json.dumps(LEASE).encode()) -> None:
        self.answer = answer
        self.requests: list[tuple[str, str, Any]] = []

    async def send(self, request: Request) -> bytes:
        assert request.subject == "lease crawl/operator"
        body = request.body and json.loads(request.body)
        self.requests.append((request.method, request.path, body))
        return self.answer


def a_lock(api: Api) -> LeaderLock:
    return LeaderLock(api, ObjectKey("crawl", "operator"))


async def test_reads_a_lease():
    api = Api()
    lock = a_lock(api)
    assert (await lock.get()).record == RECORD
    assert api.requests == [("GET", f"{COLLECTION}/operator", None)]
    assert lock.name == "operator"


async def test_reads_a_lease_of_which_nothing_is_set():
    for rest in ("", ',"spec":{}', ',"spec":{"holderIdentity":null}', ',"spec":null'):
        api = Api(f'{{"metadata":{{}}{rest}}}'.encode())
        assert (await a_lock(api).get()).record == LockRecord()


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"spec":{"leaseDurationSeconds":"x"}}'])
async def test_an_answer_that_is_no_lease_is_tried_again_later(answer: bytes):
    with pytest.raises(UnavailableError, match="no readable Lease"):
        await a_lock(Api(answer)).get()


async def test_makes_a_lease():
    api = Api()
    stored = await a_lock(api).create(RECORD)
    assert stored.record == RECORD
    spec = {name: value for name, value in LEASE["spec"].items() if name != "strategy"}
    metadata = {"namespace": "crawl", "name": "operator"}
    assert api.requests == [("POST", COLLECTION, {**LEASE, "metadata": metadata, "spec": spec})]


async def test_replaces_the_version_that_was_read_and_keeps_what_others_wrote():
    api = Api()
    lock = a_lock(api)
    stored = await lock.get()
    await lock.update(stored, LockRecord("", timedelta(seconds=1), None, None, 4))
    method, path, written = api.requests[-1]
    assert (method, path) == ("PUT", f"{COLLECTION}/operator")
    assert written["metadata"] == LEASE["metadata"]
    assert written["spec"] == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": None,
        "renewTime": None,
        "leaseTransitions": 4,
        "strategy": "OldestEmulationVersion",
    }


async def test_times_have_six_digits_and_are_utc():
    moment = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    api = Api()
    await a_lock(api).update(
        StoredRecord(RECORD, LEASE), LockRecord("a", timedelta(seconds=15), moment, moment)
    )
    assert api.requests[-1][2]["spec"]["renewTime"] == "2026-01-01T00:00:00.000000Z"


async def test_removes_no_other_version_than_the_one_meant():
    api = Api()
    await a_lock(api).delete(StoredRecord(RECORD, LEASE))
    preconditions = {"uid": "u1", "resourceVersion": "17"}
    assert api.requests == [("DELETE", f"{COLLECTION}/operator", {"preconditions": preconditions})]

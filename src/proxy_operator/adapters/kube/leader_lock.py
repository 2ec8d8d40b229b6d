"""The `coordination.k8s.io/v1` Lease that candidates for leadership write to.

The rule: what others put into the object (labels, an owner, the fields of coordinated election)
is written back as it was read; only the fields of an election are ours.
https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, cast

import msgspec

from proxy_operator.adapters.kube.client import Request
from proxy_operator.adapters.kube.codec import collection_path, object_path
from proxy_operator.runtime.election import LockRecord, StoredRecord
from proxy_operator.runtime.errors import UnavailableError
from proxy_operator.runtime.objects import ObjectKey

API_VERSION: Final = "coordination.k8s.io/v1"
KIND: Final = "Lease"
_PLURAL: Final = "leases"


class Sender(Protocol):
    """Sends requests to the API server (`client.KubeClient`)."""

    async def send(self, request: Request) -> bytes:
        """Return the body of a successful answer. Raises the errors of the object port."""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct, frozen=True):
    spec: _Spec | None = None


class LeaderLock:
    """One Lease (`runtime.election.LockStore`)."""

    def __init__(self, client: Sender, key: ObjectKey) -> None:
        self._client = client
        self._key = key
        self._collection = collection_path(API_VERSION, _PLURAL, key.namespace)
        self._path = object_path(API_VERSION, _PLURAL, key)

    @property
    def name(self) -> str:
        """The name of the Lease, as metrics and logs have it."""
        return self._key.name

    async def get(self) -> StoredRecord:
        return _read(await self._request("GET", self._path, None))

    async def create(self, record: LockRecord) -> StoredRecord:
        metadata = {"namespace": self._key.namespace, "name": self._key.name}
        lease = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata}
        return _read(await self._request("POST", self._collection, _written(lease, record)))

    async def update(self, stored: StoredRecord, record: LockRecord) -> StoredRecord:
        lease = cast("Mapping[str, Any]", stored.origin)
        return _read(await self._request("PUT", self._path, _written(lease, record)))

    async def delete(self, stored: StoredRecord) -> None:
        """Remove that version of the Lease. ConflictError: it has changed; NotFoundError."""
        meta = cast("Mapping[str, Any]", stored.origin)["metadata"]
        preconditions = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        await self._request(
            "DELETE", self._path, msgspec.json.encode({"preconditions": preconditions})
        )

    async def _request(self, method: str, path: str, body: bytes | None) -> bytes:
        return await self._client.send(Request(method, path, f"lease {self._key}", {}, body))


def _read(body: bytes) -> StoredRecord:
    try:
        lease = msgspec.json.decode(body)
        spec = msgspec.convert(lease, _Lease).spec or _Spec()
    except msgspec.MsgspecError as err:
        raise UnavailableError(f"the API server answered with no readable Lease: {err}") from err
    record = LockRecord(
        holder=spec.holder_identity or "",
        duration=timedelta(seconds=spec.lease_duration_seconds or 0),
        acquired_at=spec.acquire_time,
        renewed_at=spec.renew_time,
        transitions=spec.lease_transitions or 0,
    )
    return StoredRecord(record, lease)


def _written(lease: Mapping[str, Any], record: LockRecord) -> bytes:
    """Return the Lease with this record. Its metadata names the version that is replaced."""
    fields = {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": int(record.duration.total_seconds()),
        "acquireTime": _micro_time(record.acquired_at),
        "renewTime": _micro_time(record.renewed_at),
        "leaseTransitions": record.transitions,
    }
    return msgspec.json.encode({**lease, "spec": {**(lease.get("spec") or {}), **fields}})


def _micro_time(moment: datetime | None) -> str | None:
    """Return a `metav1.MicroTime`, which the API server reads with six digits only."""
    if moment is None:
        return None
    naive = moment.astimezone(UTC).replace(tzinfo=None)
    return f"{naive.isoformat(timespec='microseconds')}Z"

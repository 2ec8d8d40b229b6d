"""The object port over a kube-apiserver.

Preconditions travel inside the patch: the server compares uid and resourceVersion itself, in the
same step as the write.
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, Protocol

from proxy_operator.adapters.kube.client import JSON, JSON_PATCH, MERGE_PATCH, KubeClient, Request
from proxy_operator.adapters.kube.codec import (
    Codec,
    collection_path,
    document_of,
    encode,
    object_path,
)
from proxy_operator.adapters.kube.listwatch import ListWatch, Scope, WatchTimes
from proxy_operator.domain.kinds import Kind, addressed, content_of, kind_of, to_document
from proxy_operator.runtime import verbs
from proxy_operator.runtime.errors import (
    AlreadyExistsError,
    ConflictError,
    FieldError,
    InvalidError,
    NotFoundError,
)
from proxy_operator.runtime.objects import (
    Applied,
    ApplyOutcome,
    MetadataPatch,
    ObjectKey,
    ObjectList,
    Preconditions,
    T,
    WatchEvent,
    key_of,
)

FIELD_MANAGER: Final = "proxy-operator"
_WRITE: Final = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
_APPLY_ATTEMPTS: Final = 5
_UNUSED: Final = verbs.Stamp("", "")
"""The server stamps new objects itself."""


class Admission(Protocol):
    """Completes and judges manifests, as the embedded home does."""

    def admit(self, manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the object with its defaults, or raise InvalidError naming every fault."""


class KubeObjectClient:
    """All verbs over an open `KubeClient`."""

    def __init__(
        self, client: KubeClient, admission: Admission, times: WatchTimes | None = None
    ) -> None:
        self._client = client
        self._admission = admission
        self._listwatch = ListWatch(client, times)

    async def get(self, kind: type[T], key: ObjectKey) -> T:
        row = kind_of(kind)
        return Codec(row).object(await self._client.send(_request("GET", row, key)))

    async def list(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> ObjectList[T]:
        return await self._listwatch.list(kind_of(kind), Scope(namespace, labels or {}))

    def watch(
        self,
        kind: type[T],
        resource_version: str,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        scope = Scope(namespace, labels or {})
        return self._listwatch.watch(kind_of(kind), scope, resource_version)

    async def create(self, obj: T) -> T:
        row = kind_of(type(obj))
        document = to_document(obj)
        document.pop("status", None)
        return Codec(row).object(await self._create(row, key_of(obj), document))

    async def patch_metadata(
        self, kind: type[T], key: ObjectKey, preconditions: Preconditions, patch: MetadataPatch
    ) -> T:
        row = kind_of(kind)
        meta: dict[str, Any] = {"uid": preconditions.uid}
        if preconditions.resource_version is not None:
            meta["resourceVersion"] = preconditions.resource_version
        for field, changes in (("labels", patch.labels), ("annotations", patch.annotations)):
            if changes:
                meta[field] = dict(changes)
        if patch.finalizers is not None:
            meta["finalizers"] = list(patch.finalizers)
        body = encode({"metadata": meta})
        request = _request("PATCH", row, key, body, MERGE_PATCH)
        return Codec(row).object(await self._client.send(request))

    async def patch_status(self, obj: T) -> T:
        row, meta = kind_of(type(obj)), obj.metadata
        if not row.has_status:
            raise TypeError(f"{row.kind} has no status")
        # A merge could not take away what is no more.
        steps = [
            {"op": "replace", "path": "/metadata/uid", "value": meta.uid},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            {"op": "add", "path": "/status", "value": to_document(obj)["status"]},
        ]
        request = _request("PATCH", row, key_of(obj), encode(steps), JSON_PATCH)
        status = request._replace(path=f"{request.path}/status")
        return Codec(row).object(await self._client.send(status))

    async def apply(self, manifest: Mapping[str, Any]) -> Applied:
        for _ in range(_APPLY_ATTEMPTS - 1):
            try:
                return await self._apply(manifest)
            except (ConflictError, AlreadyExistsError, NotFoundError):
                continue
        return await self._apply(manifest)

    async def delete(
        self, kind: type[T], key: ObjectKey, preconditions: Preconditions | None = None
    ) -> None:
        options: dict[str, Any] = {"propagationPolicy": "Background"}
        if preconditions is not None:
            uid, version = preconditions
            options["preconditions"] = {"uid": uid} | (
                {} if version is None else {"resourceVersion": version}
            )
        request = _request("DELETE", kind_of(kind), key, encode(options))
        await self._client.send(request._replace(query={}))

    async def _apply(self, manifest: Mapping[str, Any]) -> Applied:
        address = addressed(manifest)
        if address is None:
            self._admission.admit(manifest, None)
            fault = FieldError("metadata.name", "", "is required, and so is kind")
            raise InvalidError("manifest", (fault,))
        row, namespace, name = address
        key = ObjectKey(namespace, name)
        stored = await self._stored(row, key)
        admitted = self._admission.admit(manifest, stored)
        metadata, content = admitted["metadata"], content_of(row, admitted)
        if stored is None:
            document = {
                "apiVersion": row.api_version,
                "kind": row.kind,
                "metadata": {**metadata, "namespace": namespace, "name": name},
                **content,
            }
            made = Codec(row).object(await self._create(row, key, document))
            return Applied(made, ApplyOutcome.CREATED)
        decision = verbs.apply(verbs.Target(row, key, stored), metadata, content, _UNUSED)
        if decision.event is None:
            return Applied(Codec(row).object(encode(stored)), ApplyOutcome.UNCHANGED)
        body = encode(_steps(row, stored, decision.document))
        request = _request("PATCH", row, key, body, JSON_PATCH)
        obj = Codec(row).object(await self._client.send(request))
        # A cluster with another version of the CRD may fill in more than we know of.
        is_same = obj.metadata.resource_version == stored["metadata"]["resourceVersion"]
        return Applied(obj, ApplyOutcome.UNCHANGED if is_same else ApplyOutcome.CONFIGURED)

    async def _stored(self, row: Kind[Any], key: ObjectKey) -> dict[str, Any] | None:
        try:
            body = await self._client.send(_request("GET", row, key))
        except NotFoundError:
            return None
        return document_of(body)

    async def _create(self, row: Kind[Any], key: ObjectKey, document: dict[str, Any]) -> bytes:
        path = collection_path(row.api_version, row.plural, key.namespace)
        request = _request("POST", row, key, encode(document))
        return await self._client.send(request._replace(path=path))


def _request(
    method: str,
    row: Kind[Any],
    key: ObjectKey,
    body: bytes | None = None,
    content_type: str = JSON,
) -> Request:
    path = object_path(row.api_version, row.plural, key)
    query = {} if body is None else _WRITE
    return Request(method, path, f"{row.kind} {key}", query, body, content_type)


def _steps(
    row: Kind[Any], stored: Mapping[str, Any], wanted: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the JSON patch that makes `wanted` of the very object that is stored."""
    old, new = stored["metadata"], wanted["metadata"]
    steps: list[dict[str, Any]] = [
        {"op": "replace", "path": f"/metadata/{field}", "value": old[field]}
        for field in ("uid", "resourceVersion")
    ]
    steps += [
        {"op": "add", "path": f"/metadata/{field}", "value": new[field]}
        for field in ("labels", "annotations")
        if new.get(field) != old.get(field)
    ]
    # Of what a manifest sets, an admitted one has everything.
    return steps + [
        {"op": "add", "path": f"/{member}", "value": wanted[member]} for member in row.content
    ]

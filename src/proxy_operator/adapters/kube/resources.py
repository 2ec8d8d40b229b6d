"""Documents of the kinds that Kubernetes itself has: Pods, ConfigMaps, Secrets.

For adapters that make such objects. What a document means is theirs; here it is a path and bytes.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from proxy_operator.adapters.kube.client import APPLY_PATCH, KubeClient, Request
from proxy_operator.adapters.kube.codec import (
    collection_path,
    document_of,
    encode,
    label_selector,
    object_path,
)
from proxy_operator.runtime.objects import ObjectKey

Document: TypeAlias = dict[str, Any]
_PAGE: Final = "500"


class Resource(NamedTuple):
    """A kind by its place in the API."""

    api_version: str
    kind: str
    plural: str


POD: Final = Resource("v1", "Pod", "pods")
CONFIG_MAP: Final = Resource("v1", "ConfigMap", "configmaps")
SECRET: Final = Resource("v1", "Secret", "secrets")
NAMESPACE: Final = Resource("v1", "Namespace", "namespaces")


class DeleteOptions(NamedTuple):
    """Which very object is meant, and how much time it gets."""

    uid: str | None = None
    resource_version: str | None = None
    grace_seconds: int | None = None


class ResourceClient:
    """Verbs on documents. Every method raises the errors of the object port."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def get(self, resource: Resource, key: ObjectKey) -> Document:
        """Return an object; NotFoundError."""
        return document_of(await self._client.send(_request("GET", resource, key)))

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> list[Document]:
        """Return all objects with these labels, in a namespace or in all."""
        path = collection_path(resource.api_version, resource.plural, namespace)
        query = {**label_selector(labels), "limit": _PAGE}
        found: list[Document] = []
        while True:
            body = await self._client.send(Request("GET", path, resource.plural, query))
            page = document_of(body)
            found += page.get("items") or []
            token = page["metadata"].get("continue")
            if not token:
                return found
            query = {**query, "continue": token}

    async def create(self, resource: Resource, document: Document, field_manager: str) -> Document:
        """Make a new object. AlreadyExistsError, InvalidError, ForbiddenError."""
        key = _key_of(document)
        path = collection_path(resource.api_version, resource.plural, key.namespace)
        request = _request("POST", resource, key, encode(document))
        query = {"fieldManager": field_manager}
        return document_of(await self._client.send(request._replace(path=path, query=query)))

    async def apply(self, resource: Resource, document: Document, field_manager: str) -> Document:
        """Make the fields of the document so, by server-side apply; others' are taken over."""
        body = encode({"apiVersion": resource.api_version, "kind": resource.kind, **document})
        request = _request("PATCH", resource, _key_of(document), body)
        query = {"fieldManager": field_manager, "force": "true"}
        request = request._replace(query=query, content_type=APPLY_PATCH)
        return document_of(await self._client.send(request))

    async def delete(
        self, resource: Resource, key: ObjectKey, options: DeleteOptions | None = None
    ) -> None:
        """Ask for deletion. NotFoundError when it is gone, ConflictError on a precondition."""
        uid, version, grace = options or DeleteOptions()
        body: Document = {"propagationPolicy": "Background"}
        wanted = {"uid": uid, "resourceVersion": version}
        if conditions := {name: value for name, value in wanted.items() if value is not None}:
            body["preconditions"] = conditions
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        await self._client.send(_request("DELETE", resource, key, encode(body)))


def _key_of(document: Document) -> ObjectKey:
    meta = document["metadata"]
    return ObjectKey(meta.get("namespace", ""), meta["name"])


def _request(method: str, resource: Resource, key: ObjectKey, body: bytes | None = None) -> Request:
    path = object_path(resource.api_version, resource.plural, key)
    return Request(method, path, f"{resource.kind} {key}", {}, body)

"""As much of a Kubernetes cluster as a squid Pod needs: storage, a kubelet, garbage collection."""

import copy
import itertools
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from proxy_operator.adapters.kube.resources import (
    CONFIG_MAP,
    POD,
    SECRET,
    DeleteOptions,
    Document,
    Resource,
)
from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.errors import AlreadyExistsError, ConflictError, NotFoundError
from proxy_operator.runtime.objects import ObjectKey

Key = tuple[Resource, str, str]


class FakeCluster:
    """Implements `ResourceClient`. A Pod runs once its files exist, and lingers when deleted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._numbers = itertools.count(1)
        self.objects: dict[Key, Document] = {}
        self.requests: list[tuple[str, Resource]] = []
        self.writes: list[tuple[str, Resource, str]] = []
        self.failures: dict[tuple[str, Resource], Exception] = {}
        """What the next call of that verb on that resource raises; it stays until removed."""
        self.waiting: dict[str, Any] | None = None
        """Why containers do not start, as in `state.waiting`."""
        self.has_started = True
        self.terminating_for = timedelta(seconds=2)

    async def get(self, resource: Resource, key: ObjectKey) -> Document:
        self._fail("get", resource)
        self._settle()
        return copy.deepcopy(self._stored((resource, *key)))

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> list[Document]:
        self._fail("list", resource)
        self._settle()
        return [
            copy.deepcopy(one)
            for (kind, place, _), one in self.objects.items()
            if kind == resource
            and namespace in (None, place)
            and (labels or {}).items() <= one["metadata"].get("labels", {}).items()
        ]

    async def create(self, resource: Resource, document: Document, field_manager: str) -> Document:
        self._fail("create", resource)
        self._settle()
        key = self._key(resource, document)
        if key in self.objects:
            raise AlreadyExistsError(f'{resource.plural} "{key[2]}" already exists')
        self._store("create", key, document)
        return copy.deepcopy(self.objects[key])

    async def apply(self, resource: Resource, document: Document, field_manager: str) -> Document:
        self._fail("apply", resource)
        self._settle()
        key = self._key(resource, document)
        self._store("apply", key, document)
        self.objects[key]["metadata"]["managedFields"] = [
            {"manager": field_manager, "operation": "Apply", "fieldsV1": _fields(document)}
        ]
        return copy.deepcopy(self.objects[key])

    async def delete(
        self, resource: Resource, key: ObjectKey, options: DeleteOptions | None = None
    ) -> None:
        self._fail("delete", resource)
        self._settle()
        stored = self._stored((resource, *key))
        uid, version, _ = options or DeleteOptions()
        if uid is not None and stored["metadata"]["uid"] != uid:
            raise ConflictError(f"the UID in the precondition ({uid}) does not match")
        if version is not None and stored["metadata"]["resourceVersion"] != version:
            raise ConflictError(f"the version in the precondition ({version}) does not match")
        self.writes.append(("delete", resource, key.name))
        if resource == POD:
            stored["metadata"].setdefault("deletionTimestamp", self._now())
        else:
            del self.objects[(resource, *key)]
        self._settle()

    def named(self, resource: Resource) -> set[str]:
        self._settle()
        return {name for kind, _, name in self.objects if kind == resource}

    def pods(self) -> tuple[Document, ...]:
        self._settle()
        return tuple(one for key, one in self.objects.items() if key[0] == POD)

    def _fail(self, verb: str, resource: Resource) -> None:
        self.requests.append((verb, resource))
        if (verb, resource) in self.failures:
            raise self.failures[verb, resource]

    def _stored(self, key: Key) -> Document:
        if key not in self.objects:
            raise NotFoundError(f'{key[0].plural} "{key[2]}" not found')
        return self.objects[key]

    def _key(self, resource: Resource, document: Document) -> Key:
        return resource, document["metadata"]["namespace"], document["metadata"]["name"]

    def _store(self, verb: str, key: Key, document: Document) -> None:
        self.writes.append((verb, key[0], key[2]))
        number = next(self._numbers)
        old = self.objects.get(key)
        stored = copy.deepcopy(document)
        stored["metadata"] |= {
            "uid": old["metadata"]["uid"] if old else f"uid-{number}",
            "resourceVersion": str(number),
            "creationTimestamp": old["metadata"]["creationTimestamp"] if old else self._now(),
        }
        self.objects[key] = stored

    def _now(self) -> str:
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def _settle(self) -> None:
        """Let kubelet and garbage collector do what is due."""
        for key, pod in list(self.objects.items()):
            if key[0] == POD:
                self._run(key, pod)
        uids = {one["metadata"]["uid"] for one in self.objects.values()}
        for key, one in list(self.objects.items()):
            owners = one["metadata"].get("ownerReferences", [])
            if key[0] == SECRET and not any(owner["uid"] in uids for owner in owners):
                del self.objects[key]

    def _run(self, key: Key, pod: Document) -> None:
        deleted = pod["metadata"].get("deletionTimestamp")
        if deleted:
            if self._clock.now() - datetime.fromisoformat(deleted) >= self.terminating_for:
                del self.objects[key]
            return
        if pod.get("status", {}).get("phase") in ("Running", "Failed", "Succeeded"):
            return
        pod["spec"]["nodeName"] = "node"
        if self.waiting is None and self.has_started and self._has_files(key[1], pod):
            octets = pod["metadata"]["resourceVersion"]
            pod["status"] = {"phase": "Running", "podIP": f"10.244.0.{octets}"}
            return
        waiting = self.waiting or {"reason": "ContainerCreating"}
        image = pod["spec"]["containers"][0]["image"]
        pod["status"] = {
            "phase": "Pending",
            "containerStatuses": [{"name": "squid", "image": image, "state": {"waiting": waiting}}],
        }

    def _has_files(self, namespace: str, pod: Document) -> bool:
        needed = [
            (SECRET, volume["secret"]["secretName"])
            if "secret" in volume
            else (CONFIG_MAP, volume["configMap"]["name"])
            for volume in pod["spec"]["volumes"]
            if "secret" in volume or "configMap" in volume
        ]
        return all((resource, namespace, name) in self.objects for resource, name in needed)


def _fields(value: Any) -> dict[str, Any]:
    """FieldsV1 of an applied document."""
    if isinstance(value, dict):
        address = {"apiVersion", "kind"}
        return {
            f"f:{key}": {"f:labels": _fields(item["labels"]), **_owners(item)}
            if key == "metadata"
            else _fields(item)
            for key, item in value.items()
            if key not in address
        }
    return {}


def _owners(meta: dict[str, Any]) -> dict[str, Any]:
    items: dict[str, Any] = {
        "k:" + json.dumps({"uid": one["uid"]}): {} for one in meta.get("ownerReferences", [])
    }
    return {"f:ownerReferences": {".": {}, **items}}

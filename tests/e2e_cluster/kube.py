"""A cluster as its user sees it: kubectl to change it, plain reads to look at it.

A rule a visitor must keep: every wait has an end, and says what it saw last.
"""

import json
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from tests.cluster.api import Api
from tests.cluster.existing import ExistingCluster
from tests.cluster.node import NodeCluster

T = TypeVar("T")
PROXY_API = "apis/crawl.example.com/v1alpha1"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


class Kube:
    """What the tests do with a cluster."""

    def __init__(self, cluster: NodeCluster | ExistingCluster) -> None:
        self.cluster = cluster
        self._api = Api(cluster.kubeconfig)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl; what it complains of becomes the failure of the test."""
        try:
            return self.cluster.kubectl(*arguments, stdin=stdin)
        except subprocess.CalledProcessError as err:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {err.stderr}") from None

    def apply(self, *documents: dict[str, Any]) -> None:
        """Apply documents in order."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
        self.kubectl("apply", "--filename=-", stdin=text)

    def create(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        """Create one object and return it as stored."""
        status, stored = self._api.send("POST", f"/{path}", document)
        assert status == 201, stored
        return stored

    def get(self, path: str) -> dict[str, Any] | None:
        """Return an object by its path in the API, or None."""
        status, found = self._api.send("GET", f"/{path}")
        assert status in {200, 404}, found
        return found if status == 200 else None

    def items(self, path: str) -> list[dict[str, Any]]:
        """Return all objects of a collection; none where its kind does not exist."""
        found = self.get(path)
        return found["items"] if found else []

    def proxy(self, namespace: str, name: str) -> dict[str, Any] | None:
        return self.get(f"{PROXY_API}/namespaces/{namespace}/proxies/{name}")

    def pods_of(self, proxy: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return every Pod with the label of this Proxy, those on their way out too."""
        meta = proxy["metadata"]
        label = f"proxy-operator-uid%3D{meta['uid']}"
        return self.items(f"api/v1/namespaces/{meta['namespace']}/pods?labelSelector={label}")

    def wait_condition(
        self, namespace: str, name: str, kind: str, reason: str, *, within: float = 60
    ) -> dict[str, Any]:
        """Wait until a condition of a Proxy has this reason, and return the condition."""

        def find() -> Any:
            conditions = conditions_of(self.proxy(namespace, name))
            row = conditions.get(kind, {})
            return row if row.get("reason") == reason else _Not(conditions)

        return until(f"{kind}={reason} at {namespace}/{name}", find, within=within)

    def wait_ready(self, namespace: str, name: str, *, within: float = 60) -> dict[str, Any]:
        """Wait until a Proxy is Ready, and return it."""

        def find() -> Any:
            proxy = self.proxy(namespace, name)
            is_ready = proxy is not None and proxy.get("status", {}).get("phase") == "Ready"
            return proxy if is_ready else _Not(proxy and proxy.get("status"))

        return until(f"Ready {namespace}/{name}", find, within=within)

    @contextmanager
    def namespace(self, prefix: str, labels: Mapping[str, str] = {}) -> Iterator[str]:
        """Lend a namespace under the restricted Pod security profile."""
        name = f"{prefix}-{uuid.uuid4().hex[:6]}"
        metadata = {"name": name, "labels": {**RESTRICTED, **labels}}
        self.create("api/v1/namespaces", {"metadata": metadata})
        path = f"api/v1/namespaces/{name}/serviceaccounts/default"
        # Without it no Pod is admitted.
        until(f"the service account of {name}", lambda: self.get(path), within=30)
        try:
            yield name
        finally:
            self.kubectl("delete", "namespace", name, "--wait=false")


def conditions_of(proxy: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return the conditions of a Proxy by type."""
    rows = (proxy or {}).get("status", {}).get("conditions", ())
    return {row["type"]: row for row in rows}


class _Not:
    """A false answer that shows what was there instead."""

    def __init__(self, seen: Any) -> None:
        self._seen = seen

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return repr(self._seen)


def until(what: str, find: Callable[[], T], *, within: float) -> T:
    """Return the first true answer."""
    end = time.monotonic() + within
    while not (found := find()):
        assert time.monotonic() < end, f"no {what} within {within} s; last seen: {found!r}"
        threading.Event().wait(0.2)
    return found

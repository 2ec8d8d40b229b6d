"""The API server that `bench.cluster` measures operators on, and all that acts on it beside them.

Operators are one user of the API server, the bench another one: that is how the audit log tells
their requests apart.
"""

import asyncio
import base64
import collections
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
from tests.cluster.certificates import ADMINISTRATORS
from tests.cluster.control_plane import ControlPlane
from tests.cluster.programs import for_control_plane

from proxy_operator.adapters.admission import crd
from proxy_operator.adapters.kube.client import MERGE_PATCH, KubeClient, Request
from proxy_operator.adapters.kube.listwatch import lines
from proxy_operator.adapters.kube.sources import discover_access
from proxy_operator.runtime.clock import SystemClock

NAMESPACE: Final = "bench"
LOCK_NAMESPACE: Final = "proxy-operator"
BASE: Final = "/apis/crawl.example.com/v1alpha1"
PROXIES: Final = f"{BASE}/namespaces/{NAMESPACE}/proxies"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
IN_FLIGHT: Final = 16
OPERATOR: Final = "operator"
WRITES: Final = {"create", "update", "patch", "delete"}
CLONES: Final = 100
"""Objects in one transaction of etcd, which takes 128."""
ENDLESS: Final = timedelta(minutes=30)


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: list[_Condition] = []


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class Seen(msgspec.Struct):
    """What the bench reads of a Proxy or a Pod."""

    metadata: _Meta
    status: _Status = msgspec.field(default_factory=_Status)

    def has(self, condition: str) -> bool:
        return any(c.type == condition and c.status == "True" for c in self.status.conditions)


class _Event(msgspec.Struct):
    type: str
    object: Seen


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str


class _List(msgspec.Struct):
    metadata: _ListMeta


class World:
    """An API server with Proxies and nothing else that writes."""

    def __init__(
        self, plane: ControlPlane, client: KubeClient, etcd: aiohttp.ClientSession
    ) -> None:
        self.plane = plane
        self.client = client
        self.kubeconfig = _kubeconfig(plane, OPERATOR)
        self._etcd = etcd
        self._audited = 0

    async def send(self, method: str, path: str, body: Any = None, kind: str = "") -> bytes:  # noqa: ANN401
        request = Request(method, path, path, {}, msgspec.json.encode(body) if body else None)
        return await self.client.send(request._replace(content_type=kind or request.content_type))

    async def version(self, path: str) -> str:
        """Return the resource version to watch a collection from."""
        request = Request("GET", path, path, {"limit": "1"})
        listing = msgspec.json.decode(await self.client.send(request), type=_List)
        return listing.metadata.resource_version

    async def watch(
        self, path: str, version: str, stands: asyncio.Event
    ) -> AsyncIterator[tuple[str, Seen]]:
        """Yield type and object of every change, for as long as somebody asks.

        The API server ends the watch of a reader that is late, so it is taken up again.
        """
        decoder = msgspec.json.Decoder(_Event)
        while True:
            query = {"watch": "1", "resourceVersion": version}
            request = Request("GET", path, path, query)
            async with self.client.stream(request, silent_for=ENDLESS) as content:
                stands.set()
                async for line in lines(content):
                    event = decoder.decode(line)
                    version = event.object.metadata.resource_version
                    yield event.type, event.object

    def forget_requests(self) -> None:
        """Let `requests` begin here."""
        self._audited = self.plane.audit_log.stat().st_size

    def requests(self) -> collections.Counter[str]:
        """Count what the operator has written since `forget_requests`, by verb and resource."""
        counts: collections.Counter[str] = collections.Counter()
        with self.plane.audit_log.open("rb") as log:
            log.seek(self._audited)
            for line in log:
                event = json.loads(line)
                if event["user"]["username"] == OPERATOR and event["verb"] in WRITES:
                    counts[_words(event)] += 1
        return counts

    def cpu_of_servers(self, cpu_of: Callable[[int], float]) -> float:
        names = ("kube-apiserver", "etcd")
        return sum(cpu_of(self.plane.processes.pid(name)) for name in names)

    async def create(self, size: int, spec_of: Callable[[int], dict[str, Any]]) -> None:
        """Create Proxies, some at a time."""
        numbers = iter(range(size))

        async def work() -> None:
            for n in numbers:
                await self.send("POST", PROXIES, _document(n, spec_of(n)))

        async with asyncio.TaskGroup() as group:
            for _ in range(IN_FLIGHT):
                group.create_task(work())

    async def clone(self, size: int) -> None:
        """Write copies of the one Proxy straight into etcd until there are so many.

        The same bytes as through the API server, which would take minutes.
        """
        stored = (await self._kv("range", {"key": _key(_registry(_name(0)))}))["kvs"][0]["value"]
        sample = json.loads(base64.b64decode(stored))
        for first in range(1, size, CLONES):
            puts = [
                {"requestPut": {"key": _key(_registry(_name(n))), "value": _clone(sample, n)}}
                for n in range(first, min(size, first + CLONES))
            ]
            await self._kv("txn", {"success": puts})

    async def wipe(self) -> None:
        """Remove all that a run has made, below the API server, which sees it go."""
        for prefix in (
            "/registry/crawl.example.com/proxies/",
            f"/registry/pods/{NAMESPACE}/",
            f"/registry/configmaps/{NAMESPACE}/",
            f"/registry/events/{NAMESPACE}/",
            f"/registry/leases/{LOCK_NAMESPACE}/",
        ):
            end = base64.b64encode(prefix[:-1].encode() + b"0").decode()
            await self._kv("deleterange", {"key": _key(prefix), "range_end": end})

    async def _kv(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        async with self._etcd.post(f"http://etcd/v3/kv/{verb}", data=json.dumps(body)) as answer:
            if answer.status != 200:
                raise SystemExit(f"etcd: {await answer.text()}")
            found: dict[str, Any] = await answer.json(content_type=None)
            return found


class Nodes:
    """Makes every Pod run a while after it was made, as a scheduler and kubelets would."""

    def __init__(self, world: World, delay: float) -> None:
        self._world = world
        self._delay = delay
        self._writes: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Semaphore(IN_FLIGHT)
        self._count = 0

    async def run(self, stands: asyncio.Event) -> None:
        version = await self._world.version(PODS)
        async for kind, pod in self._world.watch(PODS, version, stands):
            if kind == "ADDED":
                task = asyncio.get_running_loop().create_task(self._start(pod.metadata.name))
                self._writes.add(task)
                task.add_done_callback(self._writes.discard)

    async def _start(self, name: str) -> None:
        await asyncio.sleep(self._delay)
        self._count += 1
        ip = f"10.9.{self._count >> 8 & 255}.{self._count & 255}"
        status = {
            "phase": "Running",
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        async with self._turn:
            await self._world.send(
                "PATCH", f"{PODS}/{name}/status", {"status": status}, MERGE_PATCH
            )


@contextlib.asynccontextmanager
async def started(state: Path, *, with_rules: bool) -> AsyncIterator[World]:
    """Start an API server that serves Proxies; without the rules between their fields, any."""
    plane = ControlPlane(for_control_plane(), state)
    plane.start()
    try:
        access = discover_access(_kubeconfig(plane, "bench"), None, {}, SystemClock())
        connector = aiohttp.UnixConnector(path=f"{state}/etcd.sock")
        async with KubeClient(access) as client, aiohttp.ClientSession(connector=connector) as etcd:
            world = World(plane, client, etcd)
            await world.send("POST", CRDS, _definition(with_rules=with_rules))
            for name in (NAMESPACE, LOCK_NAMESPACE):
                await world.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
            # Without the account no Pod is admitted; its controller does not run here.
            account = {"metadata": {"name": "default"}}
            await world.send("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account)
            await _warm_up(world)
            yield world
    finally:
        plane.stop()


async def _warm_up(world: World) -> None:
    """Let the API server build what it builds for a new resource before anything is measured."""
    while True:
        with contextlib.suppress(Exception):
            await world.version(PROXIES)
            break
        await asyncio.sleep(0.1)
    endpoint = {"mode": "External", "endpoint": {"host": "10.0.0.1", "port": 1}}
    for n in range(50):
        await world.send("POST", PROXIES, _document(n, endpoint))
        path, status = f"{PROXIES}/{_name(n)}", {"status": {"phase": "Pending"}}
        await world.send("PATCH", f"{path}/status", status, MERGE_PATCH)
        await world.send("DELETE", path)


def _definition(*, with_rules: bool) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(crd.document()))
    if not with_rules:
        schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"].pop("x-kubernetes-validations")
    return document


def _kubeconfig(plane: ControlPlane, user: str) -> Path:
    path = plane.state / f"{user}.kubeconfig"
    return plane.certificates.kubeconfig(path, plane.url, user, ADMINISTRATORS)


def _name(n: int) -> str:
    return f"proxy-{n:06d}"


def _document(n: int, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "crawl.example.com/v1alpha1",
        "kind": "Proxy",
        "metadata": {"name": _name(n), "labels": {"pool": f"pool-{n % 10}"}},
        "spec": {
            "maxLeases": 4,
            "attributes": {"region": ("eu", "us", "ap", "sa")[n % 4], "asn": str(n % 500)},
            **spec,
        },
    }


def _registry(name: str) -> str:
    return f"/registry/crawl.example.com/proxies/{NAMESPACE}/{name}"


def _key(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _clone(sample: dict[str, Any], n: int) -> str:
    """Return the sample under another name, uid and address, in etcd's own alphabet."""
    uid: str = sample["metadata"]["uid"]
    text = json.dumps(sample, separators=(",", ":"))
    text = text.replace(_name(0), _name(n)).replace(uid, f"{n:08x}{uid[8:]}")
    return _key(text.replace('"10.0.0.0"', f'"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}"') + "\n")


def _words(event: dict[str, Any]) -> str:
    what = event["objectRef"]
    return " ".join(filter(None, (event["verb"], what["resource"], what.get("subresource"))))

"""The operator as a process, while its API server and the way to it fail."""

import asyncio
import random
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy_operator.adapters.kube.client import MERGE_PATCH, KubeClient, Request
from proxy_operator.adapters.kube.codec import encode
from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.errors import NotFoundError, ObjectError, UnavailableError
from tests.cluster.control_plane import ControlPlane
from tests.e2e.processes import until as until_now
from tests.integration.access import connected
from tests.integration.front import Front, broken_off, plain_kubeconfig, refusal
from tests.integration.loops import LoopThread
from tests.integration.mirrors import BRIEF, is_current, mirrored, until
from tests.integration.relay import Relay
from tests.integration.replicas import ClusterSite, Replica, a_rented

CHANGES = 1000
NAMES = [f"p{number:02}" for number in range(40)]
PATIENT = ("--leader-lease-duration", "60s", "--leader-renew-deadline", "50s")
"""For tests in which the leader is to go on without its API server."""
LOST_PATIENCE = 60.0


@pytest.fixture(scope="module")
def cut_off(
    proxy_api: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Replica, float]]:
    """An operator without an API server, and since when.

    Its patience is longer than most tests take, so it waits while they run.
    """
    site = ClusterSite(proxy_api, tmp_path_factory.mktemp("cut-off"))
    try:
        replica = site.leader("--leader-lease-duration", "10m", "--leader-renew-deadline", "9m")
        assert replica.readiness() == (200, "ok")
        replica.relay.refuse()
        yield replica, time.monotonic()
    finally:
        site.close()


class Writer:
    """Changes Proxies at random, straight at the API server, until so many changes were made."""

    def __init__(self, client: KubeClient, site: ClusterSite) -> None:
        self._client = client
        self._site = site
        self._random = random.Random(4)
        self.made = 0

    async def run(self) -> None:
        while self.made < CHANGES:
            name = self._random.choice(NAMES)
            try:
                await self._change(name)
            except NotFoundError:
                await self._try(self._request("POST", "", a_rented(name)))
            except UnavailableError:
                await asyncio.sleep(0.2)
            await asyncio.sleep(0.01)

    async def _change(self, name: str) -> None:
        dice = self._random.random()
        if dice < 0.05:
            await self._send(self._request("DELETE", name, None))
        elif dice < 0.5:
            port = self._random.randrange(1, 9)
            await self._send(self._request("PATCH", name, {"spec": {"endpoint": {"port": port}}}))
        else:
            note = f"{self.made}\u0085\u2028"
            patch = {"metadata": {"annotations": {"note": note}}}
            await self._send(self._request("PATCH", name, patch))

    async def _try(self, request: Request) -> None:
        try:
            await self._send(request)
        except ObjectError:
            return

    async def _send(self, request: Request) -> None:
        await self._client.send(request)
        self.made += 1

    def _request(self, method: str, name: str, body: object) -> Request:
        content = None if body is None else encode(body)
        kind = MERGE_PATCH if method == "PATCH" else "application/json"
        return Request(method, self._site.path("proxies", name), name, {}, content, kind)


async def write_and_follow(
    site: ClusterSite, kubeconfig: Path, is_calm: threading.Event
) -> list[str]:
    """Make the changes; return what an informer was told had gone, once it knows all."""
    async with (
        connected(site.plane) as direct,
        mirrored(kubeconfig, Proxy, site.namespace, BRIEF) as mirror,
    ):
        await Writer(direct, site).run()
        await until(is_calm.is_set, within=60)
        await until(lambda: is_current(site, mirror), within=35)
        return mirror.deleted


def misfortunes(plane: ControlPlane, front: Front, relay: Relay) -> None:
    """Let everything happen that may happen to an API server and to the way there."""
    watches, statuses, lists = "watch=1", "/status", "limit=500"
    front.inject("PATCH", statuses, refusal(409, "Conflict"), times=5)
    front.inject("GET", watches, refusal(410, "Expired"))
    relay.cut()
    pause(1)
    front.inject("PATCH", statuses, refusal(429, "TooManyRequests", retry_after=1), times=3)
    front.inject("GET", watches, broken_off(410, "Expired"))
    front.inject("GET", lists, refusal(429, "TooManyRequests", retry_after=1))
    relay.cut()
    pause(1.5)
    relay.silence()
    pause(2.5)
    relay.heal()
    relay.cut()
    front.inject("PATCH", statuses, refusal(500, "InternalError"), times=3)
    pause(1)
    relay.refuse()
    pause(0.5)
    relay.heal()
    relay.delay = 1.0
    pause(5)
    relay.delay = 0.0
    # From this thread: the API server ends with the one that starts it.
    plane.stop_apiserver()
    plane.start_apiserver()


def pause(seconds: float) -> None:
    time.sleep(seconds)  # noqa: TID251 - other processes take real time


@pytest.mark.usefixtures("cut_off")
def test_nothing_is_lost_in_a_thousand_changes(site: ClusterSite, tmp_path: Path):
    site.create(*map(a_rented, NAMES))
    is_calm = threading.Event()
    with (
        Front(site.plane, "front") as front,
        Relay(front.url) as relay,
        LoopThread() as loop,
    ):
        kubeconfig = plain_kubeconfig(tmp_path / "plain", relay.url)
        replica = site.leader(*PATIENT, relay=relay, kubeconfig=kubeconfig)
        following = loop.start(write_and_follow(site, kubeconfig, is_calm))
        misfortunes(site.plane, front, relay)
        is_calm.set()
        assert following.result(90)
        site.wait_settled(within=35)
        assert front.left() == []
        assert replica.operator.process.poll() is None
        assert "Traceback" not in replica.operator.output()


def test_readiness_names_the_caches_that_are_lost(cut_off: tuple[Replica, float]):
    replica, since = cut_off
    if time.monotonic() - since < LOST_PATIENCE - 5:
        assert replica.readiness() == (200, "ok")
    until_now(
        lambda: replica.readiness()[0] == 503,
        "an operator that is not ready",
        within=LOST_PATIENCE + 5 - (time.monotonic() - since),
    )
    said = replica.readiness()[1]
    for kind in ("Proxy", "Secret crawl.example.com/credentials=true"):
        assert re.search(rf"the watch of {kind} has been lost for \d+ s", said), said
    assert replica.operator.ask("GET", "/healthz", server="health-probe").status == 200
    replica.relay.heal()
    until_now(lambda: replica.readiness() == (200, "ok"), "ready again", within=35)

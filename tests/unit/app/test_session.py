"""Applying, following and taking down, on the real store with an operator played by hand."""

import asyncio

import pytest

from proxy_operator.app.client import open_home
from proxy_operator.app.manifests import Manifest, ManifestError
from proxy_operator.app.session import apply_and_tell, follow_until_ready, summary_of, tear_down
from proxy_operator.app.settings import HomeAddress
from proxy_operator.domain.condition import ConditionStatus, ConditionType, with_condition
from proxy_operator.domain.names import FINALIZER
from proxy_operator.domain.proxy import Phase, Proxy, ProxyStatus
from proxy_operator.runtime.objects import MetadataPatch, ObjectKey, Preconditions, key_of
from tests.builders import EPOCH, a_manifest, a_proxy, a_secret


class Notes:
    """A narrator that remembers."""

    def __init__(self):
        self.lines: list[str] = []
        self.lives: list[str] = []

    def line(self, text):
        self.lines.append(text)

    def live(self, text):
        self.lives.append(text)


@pytest.fixture
async def home(tmp_path):
    async with open_home(HomeAddress(data_dir=tmp_path / "data"), create=True) as home:
        yield home


def manifests(*proxies):
    return [Manifest(f"m{n}", a_manifest(proxy)) for n, proxy in enumerate(proxies)]


async def make(home, name, status):
    proxy = (await home.client.get(Proxy, ObjectKey("default", name))).draft()
    proxy.status = status
    await home.client.patch_status(proxy)


async def test_applying_returns_the_proxies(home):
    notes = Notes()
    secret = a_secret("s1")
    given = [
        *manifests(a_proxy("p1"), a_proxy("p2")),
        Manifest(
            "s", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret.metadata.name}}
        ),
    ]
    assert await apply_and_tell(home, given, notes) == [
        ObjectKey("default", "p1"),
        ObjectKey("default", "p2"),
    ]
    assert notes.lines == [
        "proxy.crawl.example.com/p1 created",
        "proxy.crawl.example.com/p2 created",
        "secret/s1 created",
    ]


async def test_a_fault_in_one_manifest_writes_none(home):
    bad = Manifest("bad.yaml", {**a_manifest(a_proxy("p2")), "spec": {"provider": "moon"}})
    with pytest.raises(ManifestError, match=r"bad\.yaml: Proxy"):
        await apply_and_tell(home, [*manifests(a_proxy("p1")), bad], Notes())
    assert (await home.client.list(Proxy)).items == []


async def test_following_says_each_change_once_and_ends_when_all_are_ready(home):
    notes = Notes()
    keys = await apply_and_tell(home, manifests(a_proxy("p1"), a_proxy("p2")), Notes())
    async with asyncio.TaskGroup() as group, asyncio.timeout(30):
        following = group.create_task(follow_until_ready(home, keys, notes))
        await until(lambda: notes.lives)
        assert notes.lines == ["  p1: Pending", "  p2: Pending"]
        ready = ProxyStatus(phase=Phase.READY, ip="127.0.0.1", port=3128, latency_millis=7)
        await make(home, "p1", ready)
        await until(lambda: "1 of 2 Ready, waiting for p2" in notes.lives)
        assert not following.done()
        p2 = await home.client.get(Proxy, ObjectKey("default", "p2"))
        await home.client.delete(Proxy, key_of(p2))
    assert notes.lines == ["  p1: Pending", "  p2: Pending", "  p1: Ready at 127.0.0.1:3128, 7 ms"]


async def until(condition):
    while not condition():  # noqa: ASYNC110 - the store answers from a thread
        await asyncio.sleep(0.01)


def test_a_summary_says_why_not():
    conditions = with_condition(
        (),
        ConditionType.PROVISIONED,
        status=ConditionStatus.FALSE,
        reason="CredentialsError",
        message="Secret s1 has no label",
        observed_generation=1,
        now=EPOCH,
    )
    proxy = a_proxy(status=ProxyStatus(phase=Phase.PENDING, conditions=conditions))
    assert summary_of(proxy) == "Pending (CredentialsError: Secret s1 has no label)"


async def set_finalizers(home, proxy, *names):
    uid = Preconditions(proxy.metadata.uid)
    await home.client.patch_metadata(Proxy, key_of(proxy), uid, MetadataPatch(finalizers=names))


async def test_taking_down_waits_for_finalizers(home):
    notes = Notes()
    await apply_and_tell(home, manifests(a_proxy("p1"), a_proxy("p2")), Notes())
    p1 = await home.client.get(Proxy, ObjectKey("default", "p1"))
    await set_finalizers(home, p1, FINALIZER)
    async with asyncio.TaskGroup() as group, asyncio.timeout(30):
        going = group.create_task(tear_down(home, notes))
        waiting = "waiting for p1 to go, each with its instance"
        await until(lambda: notes.lives[-1:] == [waiting])
        assert not going.done()
        # Said when it is true: what still waits is not called deleted.
        assert notes.lines == ['proxy.crawl.example.com "p2" deleted']
        await set_finalizers(home, p1)
    assert notes.lines == [
        'proxy.crawl.example.com "p2" deleted',
        'proxy.crawl.example.com "p1" deleted',
    ]
    assert (await home.client.list(Proxy)).items == []


async def test_taking_down_names_what_nobody_here_can_make_go(home):
    notes = Notes()
    p1 = await home.client.create(a_proxy("p1", meta={"finalizers": (FINALIZER, "a.example/x")}))
    async with asyncio.TaskGroup() as group, asyncio.timeout(30):
        group.create_task(tear_down(home, notes))
        await until(lambda: notes.lives)
        assert notes.lines == []
        await set_finalizers(home, p1, "a.example/x")
        await until(lambda: notes.lines)
        await set_finalizers(home, p1)
    assert notes.lines == [
        "waiting for p1: the finalizer a.example/x of somebody else is still set",
        'proxy.crawl.example.com "p1" deleted',
    ]


async def test_taking_down_says_once_what_holds_an_instance_up(home):
    notes = Notes()
    p1 = await home.client.create(a_proxy("p1", meta={"finalizers": (FINALIZER,)}))
    conditions = with_condition(
        (),
        ConditionType.PROVISIONED,
        status=ConditionStatus.FALSE,
        reason="PermanentError",
        message="deletion waits: no rights",
        observed_generation=1,
        now=EPOCH,
    )
    async with asyncio.TaskGroup() as group, asyncio.timeout(30):
        group.create_task(tear_down(home, notes))
        await until(lambda: notes.lives)
        await make(home, "p1", ProxyStatus(conditions=conditions))
        await until(lambda: notes.lines)
        seen = len(notes.lives)
        await until(lambda: len(notes.lives) > seen + 1)
        await set_finalizers(home, p1)
    assert notes.lines == [
        "waiting for p1: no rights",
        'proxy.crawl.example.com "p1" deleted',
    ]

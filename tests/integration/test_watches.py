"""What the operator knows of the objects, while the way to the API server fails."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proxy_operator.domain.proxy import Proxy
from tests.integration.front import Answer, Front, broken_off, plain_kubeconfig, refusal
from tests.integration.mirrors import BRIEF, LONGEST_SILENCE, Mirror, is_current, mirrored, until
from tests.integration.relay import Relay
from tests.integration.replicas import ClusterSite, a_rented

SEPARATORS = "next\u0085line\u2028paragraph\u2029end"


@pytest.fixture
def relay(site: ClusterSite) -> Relay:
    return site.relay()


@pytest.fixture
async def mirror(site: ClusterSite, relay: Relay) -> AsyncIterator[Mirror[Proxy]]:
    """A mirror of three Proxies."""
    site.create(*(a_rented(name) for name in ("a", "b", "c")))
    kubeconfig = site.kubeconfig("mirror", relay.url)
    async with mirrored(kubeconfig, Proxy, site.namespace, BRIEF) as made:
        yield made


async def test_a_watch_that_is_cut(site: ClusterSite, relay: Relay, mirror: Mirror[Proxy]):
    relay.cut()
    site.create(a_rented("late"))
    await until(lambda: is_current(site, mirror), within=5)
    assert mirror.informer.lost_at is None


async def test_a_watch_that_goes_silent(site: ClusterSite, relay: Relay, mirror: Mirror[Proxy]):
    relay.silence_present()
    site.create(a_rented("late"))
    await until(lambda: mirror.informer.lost_at is not None, within=LONGEST_SILENCE + 0.5)
    await until(lambda: is_current(site, mirror), within=5)
    assert mirror.informer.lost_at is None
    assert mirror.deleted == []


async def test_what_was_deleted_while_nobody_could_watch(
    site: ClusterSite, relay: Relay, mirror: Mirror[Proxy]
):
    relay.refuse()
    await until(lambda: mirror.informer.lost_at is not None, within=5)
    site.delete("a")
    site.delete("b")
    # The same name again: another object all the same.
    site.create(a_rented("b"), a_rented("d"))
    relay.heal()
    await until(lambda: is_current(site, mirror), within=10)
    assert sorted(mirror.deleted) == ["a", "b"]


@pytest.mark.parametrize(
    "answer",
    [refusal(410, "Expired"), broken_off(410, "Expired"), broken_off(410, "Gone")],
    ids=["status", "stream-expired", "stream-gone"],
)
async def test_a_history_that_has_expired(site: ClusterSite, tmp_path: Path, answer: Answer):
    site.create(*(a_rented(name) for name in ("a", "b", "c")))
    with Front(site.plane, "front") as front, Relay(front.url) as relay:
        kubeconfig = plain_kubeconfig(tmp_path / "plain", relay.url)
        async with mirrored(kubeconfig, Proxy, site.namespace, BRIEF) as mirror:
            front.inject("GET", "watch=1", answer, times=2)
            relay.refuse()
            site.delete("a")
            site.create(a_rented("late"))
            relay.heal()
            await until(lambda: is_current(site, mirror), within=10)
            await until(lambda: not front.left(), within=10)
            await until(lambda: is_current(site, mirror), within=10)
            assert mirror.deleted == ["a"]


async def test_line_separators_inside_strings(site: ClusterSite, mirror: Mirror[Proxy]):
    site.merge("a", {"metadata": {"annotations": {"note": SEPARATORS}}})
    site.create(a_rented("late"))
    await until(lambda: is_current(site, mirror), within=5)
    (shown,) = (obj for key, obj in mirror.objects.items() if key.name == "a")
    assert shown.metadata.annotations["note"] == SEPARATORS

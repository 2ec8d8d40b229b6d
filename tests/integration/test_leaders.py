"""Two operators on one API server: one acts, the other one takes over when it must."""

import signal
import time
from datetime import timedelta

import pytest

from proxy_operator.adapters.kube.leader_lock import LeaderLock
from proxy_operator.runtime.election import LockRecord
from proxy_operator.runtime.errors import ConflictError, NotFoundError
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.watchdog import EXIT_CODE
from tests.cluster.control_plane import ControlPlane
from tests.e2e.processes import until
from tests.integration.access import connected, make_namespace
from tests.integration.replicas import (
    LEASE_SECONDS,
    QUICK,
    ClusterSite,
    Replica,
    a_managed,
)

TAKEOVER_SECONDS = LEASE_SECONDS + 0.5 + 2.0
"""The lease, one retry, and what a process may take on a busy machine."""


@pytest.fixture
def pair(site: ClusterSite) -> tuple[Replica, Replica]:
    """A leader with two instances, and a follower."""
    leader = site.leader(*QUICK)
    follower = site.replica(*QUICK)
    site.create(a_managed("one"), a_managed("two"))
    until(lambda: len(site.pods()) == 2, "two Pods")
    site.wait_settled()
    return leader, follower


def take_over(site: ClusterSite, follower: Replica, since: float) -> None:
    """See the follower lead in time and act: there is one instance for each Proxy."""
    until(follower.is_leader, "a takeover")
    assert time.monotonic() - since < TAKEOVER_SECONDS
    site.create(a_managed("three"))
    until(lambda: follower.user in site.makers_of_pods(), "a Pod by the new leader")
    site.wait_settled()
    assert site.owners_of_pods() == sorted(proxy["metadata"]["uid"] for proxy in site.proxies())


def assert_gave_up(site: ClusterSite, old: Replica, since: int) -> None:
    """See the old leader end, with nothing written after its first `since` writes."""
    code = old.operator.process.wait(10)
    assert code in {1, EXIT_CODE}, old.operator.output()
    assert "Traceback" not in old.operator.output()
    assert site.writes(old.user)[since:] == []
    if code == 1:
        last = old.operator.err_path.read_text().splitlines()[-1]
        assert last.startswith("error: the leader lock ")


def test_a_follower_answers_but_does_not_act(site: ClusterSite, pair: tuple[Replica, Replica]):
    leader, follower = pair
    assert not follower.is_leader()
    assert follower.readiness()[0] == 200
    refused = follower.operator.ask("POST", "/v1/leases", {})
    assert (refused.status, refused.body["error"]) == (503, "not_leader")
    assert leader.operator.ask("POST", "/v1/leases", {}).status == 409
    assert site.writes(follower.user) == []
    assert follower.operator.ask("GET", "/v1/proxies").status == 200


def test_a_leader_that_ends_is_succeeded_at_once(site: ClusterSite, pair: tuple[Replica, Replica]):
    leader, follower = pair
    assert leader.operator.stop() == 0
    since = time.monotonic()
    until(follower.is_leader, "a takeover")
    assert time.monotonic() - since < LEASE_SECONDS - 0.5
    take_over(site, follower, since)


def test_a_killed_leader(site: ClusterSite, pair: tuple[Replica, Replica]):
    leader, follower = pair
    since = time.monotonic()
    leader.operator.kill()
    take_over(site, follower, since)


def test_a_leader_that_sleeps_and_wakes(site: ClusterSite, pair: tuple[Replica, Replica]):
    leader, follower = pair
    leader.operator.process.send_signal(signal.SIGSTOP)
    since, written = time.monotonic(), len(site.writes(leader.user))
    # Work for it to wake up to: an instance to remove, and one to make.
    site.delete("two")
    take_over(site, follower, since)
    leader.operator.process.send_signal(signal.SIGCONT)
    assert_gave_up(site, leader, written)


def test_a_leader_without_a_network(site: ClusterSite, pair: tuple[Replica, Replica]):
    leader, follower = pair
    leader.relay.silence()
    since, written = time.monotonic(), len(site.writes(leader.user))
    site.delete("two")
    take_over(site, follower, since)
    leader.relay.heal()
    assert_gave_up(site, leader, written)


def test_leading_from_afar(site: ClusterSite):
    """With a second each way, TLS and a request take most of what a request may take."""
    relay = site.relay()
    relay.delay = 1.0
    replica = site.replica(relay=relay)
    until(replica.is_leader, "a leader", within=30)
    site.create(a_managed("one"))
    until(site.pods, "a Pod", within=30)


async def test_a_lease_that_somebody_took_is_not_removed(kube_api: ControlPlane):
    async with connected(kube_api) as client:
        lock = LeaderLock(client, ObjectKey(await make_namespace(client, "lock"), "operator"))
        left = await lock.create(LockRecord("", timedelta(seconds=1)))
        taken = await lock.update(left, LockRecord("another", timedelta(seconds=15)))
        with pytest.raises(ConflictError):
            await lock.delete(left)
        assert (await lock.get()).record.holder == "another"
        await lock.delete(taken)
        with pytest.raises(NotFoundError):
            await lock.get()
        again = await lock.create(LockRecord("third", timedelta(seconds=15)))
        with pytest.raises(ConflictError):
            await lock.delete(taken)
        assert (await lock.get()).record == again.record

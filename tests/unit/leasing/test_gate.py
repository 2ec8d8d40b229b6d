"""A proxy is offered only while the password it asks for can be told."""

from datetime import timedelta

import pytest

from proxy_operator.domain.lease import Lease, NoMatch
from proxy_operator.domain.proxy import Proxy, SecretRef
from proxy_operator.domain.secret import Secret
from proxy_operator.leasing.feed import CandidateFeed
from proxy_operator.leasing.gate import CredentialsGate
from proxy_operator.leasing.store import LeaseStore
from proxy_operator.provisioning.credentials import SecretReader
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.objects import ObjectKey, key_of
from proxy_operator.runtime.store import Store
from tests.builders import a_secret
from tests.unit.discovery.fleet import a_leasable

TTL = timedelta(minutes=5)


class World:
    """Proxies and Secrets as informers would keep them, before a lease store."""

    def __init__(self) -> None:
        self.proxies = Store[Proxy]()
        self.secrets = Store[Secret]()
        self.leases = LeaseStore(SystemClock())
        gate = CredentialsGate(self.leases, self.proxies, SecretReader(self.secrets, self.secrets))
        self.proxies.add_handler(CandidateFeed(gate).handle)
        self.secrets.add_handler(lambda _: gate.recheck(map(key_of, self.proxies.list())))
        self.proxies.put(a_leasable("p1", credentials_secret_ref=SecretRef(name="s1")))

    def ask(self) -> Lease | NoMatch:
        return self.leases.acquire(selector={}, namespace=None, target="", ttl=TTL)


@pytest.fixture
def world() -> World:
    return World()


def test_a_proxy_waits_for_its_secret(world):
    refusal = world.ask()
    assert isinstance(refusal, NoMatch)
    assert (refusal.considered, refusal.unhealthy) == (1, 1)
    world.secrets.put(a_secret("s1"))
    assert isinstance(world.ask(), Lease)


@pytest.mark.parametrize(
    "spoilt",
    [None, a_secret("s1", labels={}), a_secret("s1", username=b"crawler")],
    ids=["deleted", "unlabelled", "no password"],
)
def test_a_spoilt_secret_counts_at_once_and_a_restored_one_too(world, spoilt):
    world.secrets.put(a_secret("s1"))
    assert isinstance(world.ask(), Lease)
    if spoilt is None:
        world.secrets.remove(ObjectKey("default", "s1"))
    else:
        world.secrets.put(spoilt)
    assert isinstance(world.ask(), NoMatch)
    world.secrets.put(a_secret("s1"))
    assert isinstance(world.ask(), Lease)


def test_a_lost_secret_takes_no_lease_away(world):
    world.secrets.put(a_secret("s1"))
    world.ask()
    world.secrets.remove(ObjectKey("default", "s1"))
    assert world.leases.total_leases() == 1


def test_a_proxy_that_has_gone_is_let_go(world):
    world.secrets.put(a_secret("s1"))
    world.proxies.remove(ObjectKey("default", "p1"))
    refusal = world.ask()
    assert isinstance(refusal, NoMatch)
    assert refusal.considered == 0

"""What the lists of the operator refuse is not offered, whatever its condition says."""

from datetime import timedelta

import pytest

from proxy_operator.domain.allow_list import AllowList, parse_allowed_host
from proxy_operator.domain.lease import Lease, NoMatch
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret
from proxy_operator.leasing.allowed import AllowedCredentials
from proxy_operator.leasing.feed import CandidateFeed
from proxy_operator.leasing.gate import CredentialsGate
from proxy_operator.leasing.store import LeaseStore
from proxy_operator.provisioning.credentials import SecretReader
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.store import Store
from tests.unit.discovery.fleet import a_leasable


def ask(allowed: AllowList) -> Lease | NoMatch:
    """Lease from a fleet of one, healthy by its condition."""
    proxies, secrets, leases = Store[Proxy](), Store[Secret](), LeaseStore(SystemClock())
    reader = AllowedCredentials(SecretReader(secrets, secrets), allowed)
    proxies.add_handler(CandidateFeed(CredentialsGate(leases, proxies, reader)).handle)
    proxies.put(a_leasable("p1", host="192.0.2.1"))
    return leases.acquire(selector={}, namespace=None, target="", ttl=timedelta(minutes=5))


@pytest.mark.parametrize(
    ("allowed", "answer"),
    [((), Lease), (("192.0.2.0/24",), Lease), (("a.example", "10.0.0.0/8"), NoMatch)],
)
def test_a_refused_endpoint_is_no_candidate(allowed: tuple[str, ...], answer: type) -> None:
    assert isinstance(ask(AllowList(endpoints=tuple(map(parse_allowed_host, allowed)))), answer)

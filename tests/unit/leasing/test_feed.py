"""Every change of a Proxy reaches the lease store as the right candidate."""

import pytest

from proxy_operator.domain.condition import ConditionStatus, ConditionType, with_condition
from proxy_operator.domain.lease import Candidate
from proxy_operator.domain.proxy import Proxy, ProxyStatus
from proxy_operator.leasing.feed import CandidateFeed, candidate_of
from proxy_operator.runtime.objects import key_of
from proxy_operator.runtime.store import Store
from tests.builders import EPOCH, a_proxy, an_external


class Sink:
    def __init__(self) -> None:
        self.candidates: dict[str, Candidate] = {}

    def upsert(self, candidate: Candidate) -> None:
        self.candidates[candidate.uid] = candidate

    def remove(self, uid: str) -> None:
        self.candidates.pop(uid, None)


def a_status(healthy: ConditionStatus = ConditionStatus.TRUE, **fields) -> ProxyStatus:
    rows = with_condition(
        (),
        ConditionType.HEALTHY,
        status=healthy,
        reason="ProbeSucceeded",
        message="",
        observed_generation=1,
        now=EPOCH,
    )
    return ProxyStatus(conditions=rows, **fields)


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def proxies(sink) -> Store[Proxy]:
    store: Store[Proxy] = Store()
    store.add_handler(CandidateFeed(sink).handle)
    return store


def test_a_candidate_carries_what_the_store_decides_by():
    proxy = an_external(
        "p1",
        host="h",
        port=1,
        attributes={"region": "eu"},
        max_leases=3,
        status=a_status(latency_millis=42),
    )
    assert candidate_of(proxy) == Candidate(
        uid=proxy.metadata.uid,
        namespace="default",
        name="p1",
        address=("h", 1),
        attributes={"region": "eu"},
        is_healthy=True,
        latency_millis=42,
        max_leases=3,
    )


@pytest.mark.parametrize(
    ("proxy", "is_healthy"),
    [
        (an_external(status=a_status()), True),
        (an_external(status=a_status(ConditionStatus.FALSE)), False),
        (an_external(status=a_status(ConditionStatus.UNKNOWN)), False),
        (an_external(), False),
        (a_proxy(status=a_status()), False),
        (a_proxy(status=a_status(ip="192.0.2.9", port=3128)), True),
        (an_external(status=a_status(), meta={"deletion_timestamp": EPOCH}), False),
    ],
    ids=["healthy", "failing", "unknown", "unprobed", "no address", "address", "deleting"],
)
def test_only_a_healthy_reachable_and_wanted_proxy_is_offered(proxy, is_healthy):
    assert candidate_of(proxy).is_healthy is is_healthy


def test_changes_and_deletions_are_passed_on(proxies, sink):
    proxy = an_external(status=a_status())
    proxies.put(proxy)
    assert sink.candidates[proxy.metadata.uid].is_healthy
    draft = proxy.draft()
    draft.status.conditions = ()
    proxies.put(draft, is_echo=True)
    assert not sink.candidates[proxy.metadata.uid].is_healthy
    proxies.remove(key_of(proxy))
    assert sink.candidates == {}


def test_a_namesake_takes_the_place_of_the_one_before(proxies, sink):
    proxies.put(an_external(meta={"uid": "old"}))
    proxies.put(an_external(meta={"uid": "new"}))
    assert set(sink.candidates) == {"new"}

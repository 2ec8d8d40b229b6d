import logging
from datetime import timedelta

import pytest

from proxy_operator.discovery.model import (
    AcquireRequest,
    Grant,
    InvalidRequestError,
    ListQuery,
    UnknownLeaseError,
)
from proxy_operator.discovery.service import MAX_UNUSABLE, proxy_url
from proxy_operator.domain.lease import NoMatch, ReportResult
from proxy_operator.domain.secret import Credentials
from proxy_operator.runtime.clock import LoopClock
from tests.builders import EPOCH, a_proxy
from tests.unit.discovery.fleet import Fleet, a_leasable

ANY = AcquireRequest()


def granted(answer: Grant | NoMatch) -> Grant:
    assert isinstance(answer, Grant), answer
    return answer


def refused(answer: Grant | NoMatch) -> NoMatch:
    assert isinstance(answer, NoMatch), answer
    return answer


@pytest.mark.parametrize(
    ("scheme", "host", "credentials", "url"),
    [
        ("http", "192.0.2.1", None, "http://192.0.2.1:3128"),
        ("https", "p.example.com", None, "https://p.example.com:3128"),
        ("http", "2001:db8::1", None, "http://[2001:db8::1]:3128"),
        ("http", "fe80::1%eth0", None, "http://[fe80::1%25eth0]:3128"),
        ("http", "h", Credentials("u", "p$x"), "http://u:p%24x@h:3128"),
        ("http", "h", Credentials("u", "p@s:s/#%"), "http://u:p%40s%3As%2F%23%25@h:3128"),
        ("http", "h", Credentials("u", "\"q'"), "http://u:%22q%27@h:3128"),
        ("http", "h", Credentials("ü", "日本"), "http://%C3%BC:%E6%97%A5%E6%9C%AC@h:3128"),
        ("http", "::1", Credentials("u", "x" * 64), f"http://u:{'x' * 64}@[::1]:3128"),
    ],
)
def test_the_url_can_be_used_as_it_is(scheme, host, credentials, url):
    assert proxy_url(scheme, host, 3128, credentials) == url


def test_a_grant_has_all_that_a_client_needs():
    fleet = Fleet().add(a_leasable("p1", attributes={"region": "eu"}, latency_millis=7))
    fleet.secrets.by_name["p1"] = Credentials("crawler", "p@ss")
    grant = granted(fleet.service.acquire(AcquireRequest(selector={"region": "eu"})))
    assert (grant.proxy.name, grant.proxy.namespace) == ("p1", "default")
    assert grant.proxy.url == "http://crawler:p%40ss@192.0.2.1:3128"
    assert (grant.proxy.username, grant.proxy.password) == ("crawler", "p@ss")
    assert (grant.proxy.host, grant.proxy.port) == ("192.0.2.1", 3128)
    assert (grant.proxy.attributes, grant.proxy.latency_millis) == ({"region": "eu"}, 7)
    assert grant.ttl_seconds == 300
    assert fleet.outcomes.seen == ["granted"]


def test_a_grant_and_its_proxy_hide_the_password():
    fleet = Fleet().add(a_leasable())
    fleet.secrets.by_name["p1"] = Credentials("crawler", "hidden-1")
    assert "hidden-1" not in repr(fleet.service.acquire(ANY))


def test_two_idle_proxies_give_two_different_leases():
    fleet = Fleet().add(a_leasable("a"), a_leasable("b"))
    names = {granted(fleet.service.acquire(ANY)).proxy.name for _ in range(2)}
    assert names == {"a", "b"}


def test_an_empty_fleet_is_a_no_match_each_time():
    fleet = Fleet()
    for _ in range(50):
        assert refused(fleet.service.acquire(ANY)).considered == 0
    assert fleet.outcomes.seen == ["no_match"] * 50


@pytest.mark.parametrize("seconds", [0, -1, 3601, 10**9, 10**30])
def test_a_ttl_out_of_range_is_refused_not_clamped(seconds):
    fleet = Fleet().add(a_leasable())
    with pytest.raises(InvalidRequestError, match="ttlSeconds: must be from 1 to 3600"):
        fleet.service.acquire(AcquireRequest(ttl_seconds=seconds))
    assert fleet.leases.total_leases() == 0
    assert fleet.outcomes.seen == []


def test_a_proxy_without_its_secret_is_passed_over_and_keeps_no_lease(caplog):
    fleet = Fleet().add(a_leasable("a"), a_leasable("b"))
    fleet.secrets.by_name["a"] = ValueError("Secret default/s is missing")
    with caplog.at_level(logging.WARNING):
        grant = granted(fleet.service.acquire(ANY))
    assert grant.proxy.name == "b"
    assert [lease.name for lease in fleet.leases.leases()] == ["b"]
    assert caplog.records[0].__dict__["reason"] == "Secret default/s is missing"


def test_a_fleet_without_its_secrets_counts_as_unhealthy_and_keeps_no_lease():
    fleet = Fleet().add(a_leasable("a", max_leases=1), a_leasable("b", healthy=False))
    fleet.secrets.by_name["a"] = ValueError("Secret default/s is missing")
    found = refused(fleet.service.acquire(ANY))
    assert (found.considered, found.unhealthy, found.at_capacity, found.in_cooldown) == (2, 2, 0, 0)
    assert fleet.leases.total_leases() == 0


def test_a_proxy_without_its_secret_is_not_listed_as_healthy():
    fleet = Fleet().add(a_leasable("a"), a_leasable("b"))
    fleet.secrets.by_name["a"] = ValueError("Secret default/s is missing")
    healthy = fleet.service.list_proxies(ListQuery(is_healthy=True)).proxies
    assert [row.name for row in healthy] == ["b"]
    rows = fleet.service.list_proxies(ListQuery()).proxies
    assert {row.name: row.healthy for row in rows} == {"a": False, "b": True}


def test_the_search_past_unusable_proxies_is_bounded():
    fleet = Fleet().add(a_leasable("a"))
    fleet.secrets.by_name["a"] = ValueError("Secret default/s is missing")
    found = refused(fleet.service.acquire(ANY))
    assert fleet.secrets.asked == MAX_UNUSABLE
    assert (found.considered, found.unhealthy) == (1, 1)
    assert fleet.leases.total_leases() == 0


def test_a_lease_on_a_namesake_is_never_handed_out():
    fleet = Fleet().add(a_leasable("a"))
    # A successor that the lease store has not been told of.
    fleet.proxies._objects = {key: a_leasable("a") for key in fleet.proxies._objects}
    refused(fleet.service.acquire(ANY))
    assert fleet.leases.total_leases() == 0


def test_reports_fall_back_from_report_to_lease_to_everybody():
    fleet = Fleet().add(a_leasable())
    lease = granted(fleet.service.acquire(AcquireRequest(target="a.example")))
    fleet.service.release(lease.id)
    fleet.service.report(lease.id, ReportResult.BANNED, "")
    assert refused(fleet.service.acquire(AcquireRequest(target="a.example"))).in_cooldown == 1
    other = granted(fleet.service.acquire(AcquireRequest(target="b.example")))
    fleet.service.release(other.id)
    anything = granted(fleet.service.acquire(ANY))
    fleet.service.release(anything.id)
    fleet.service.report(anything.id, ReportResult.RATE_LIMITED, None)
    assert refused(fleet.service.acquire(AcquireRequest(target="b.example"))).in_cooldown == 1


def test_a_report_or_renewal_of_an_unknown_lease_says_so():
    fleet = Fleet().add(a_leasable())
    with pytest.raises(UnknownLeaseError):
        fleet.service.report("nope", ReportResult.OK, None)
    with pytest.raises(UnknownLeaseError):
        fleet.service.renew("nope", 60)
    fleet.service.release("nope")


@pytest.mark.looptime(start=0)
async def test_a_renewal_counts_from_now_and_is_bounded():
    fleet = Fleet(LoopClock(EPOCH)).add(a_leasable())
    lease = granted(fleet.service.acquire(AcquireRequest(ttl_seconds=60)))
    renewed = fleet.service.renew(lease.id, 600)
    assert renewed.expires_at - EPOCH == timedelta(seconds=600)
    assert (renewed.id, renewed.ttl_seconds, renewed.target) == (lease.id, 600, None)
    with pytest.raises(InvalidRequestError):
        fleet.service.renew(lease.id, 3601)


def test_the_lease_list_tells_who_holds_what_without_credentials():
    fleet = Fleet().add(a_leasable("a"), a_leasable("b"))
    fleet.secrets.by_name["a"] = fleet.secrets.by_name["b"] = Credentials("u", "hidden-2")
    later = granted(fleet.service.acquire(AcquireRequest(ttl_seconds=900, target="x")))
    sooner = granted(fleet.service.acquire(AcquireRequest(ttl_seconds=30)))
    page = fleet.service.list_leases()
    assert [row.id for row in page.leases] == [sooner.id, later.id]
    assert [row.target for row in page.leases] == [None, "x"]
    assert page.count == 2
    assert "hidden-2" not in repr(page)


def test_a_row_of_the_fleet_shows_leases_and_no_credentials():
    fleet = Fleet().add(a_leasable("a", max_leases=3), a_proxy("b"))
    fleet.secrets.by_name["a"] = Credentials("u", "hidden-3")
    fleet.service.acquire(ANY)
    page = fleet.service.list_proxies(ListQuery())
    first, second = page.proxies
    assert (first.active_leases, first.max_leases, first.healthy) == (1, 3, True)
    assert (second.host, second.port, second.healthy, second.phase) == (
        None,
        None,
        False,
        "Pending",
    )
    assert "hidden-3" not in repr(page)

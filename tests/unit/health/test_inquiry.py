import asyncio
from datetime import timedelta

import pytest

from proxy_operator.domain.allow_list import AllowList, parse_allowed_host
from proxy_operator.domain.health import ProbeError
from proxy_operator.domain.proxy import HealthCheck
from proxy_operator.health.inquiry import SLACK, Inquirer
from proxy_operator.health.ports import TargetRequest
from proxy_operator.health.targets import TargetRules
from proxy_operator.runtime.clock import LoopClock
from tests.builders import EPOCH, an_external
from tests.unit.health.fakes import BLACK_HOLE, FakeCredentials, FakeProber, bad_answer

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

URL = "http://check.example/x"
TIMEOUT = timedelta(seconds=2)
PROXY = an_external(health_check=HealthCheck(url=URL, expected_status=204))


def only(endpoints: str = "", urls: str = "") -> AllowList:
    return AllowList(
        tuple(map(parse_allowed_host, endpoints.split())),
        tuple(map(parse_allowed_host, urls.split())),
    )


def an_inquirer(prober: FakeProber, allowed: AllowList | None = None) -> Inquirer:
    return Inquirer(
        prober, FakeCredentials(), LoopClock(EPOCH), TargetRules(), allowed or AllowList()
    )


async def test_a_target_is_asked_what_its_proxies_were_asked():
    prober = FakeProber()
    prober.targets[URL] = bad_answer()
    outcome, is_sent = await an_inquirer(prober).ask_target(PROXY, TIMEOUT)
    assert is_sent
    assert outcome == bad_answer()
    [asked] = prober.asked
    assert asked.request == TargetRequest(url=URL, expected_status=204, timeout=TIMEOUT)


@pytest.mark.parametrize(
    ("allowed", "is_asked"),
    [
        (only(urls="check.example"), True),
        (only(urls="*.example"), True),
        (only(urls="check.example:443"), False),
        (only(urls="other.example"), False),
        # A name is looked up by whoever asks: no network can vouch for it.
        (only(urls="0.0.0.0/0"), False),
        (only("other.example"), False),
    ],
    ids=["named", "below a suffix", "another port", "another host", "a network", "the endpoint"],
)
async def test_what_the_lists_forbid_is_not_asked(allowed, is_asked):
    prober = FakeProber()
    outcome, is_sent = await an_inquirer(prober, allowed).ask_target(PROXY, TIMEOUT)
    assert is_sent is bool(prober.asked) is is_asked
    assert outcome.error is (None if is_asked else ProbeError.NOT_ALLOWED)


async def test_without_a_target_nothing_is_asked():
    prober = FakeProber()
    _, is_sent = await an_inquirer(prober).ask_target(an_external(), TIMEOUT)
    assert not is_sent
    assert prober.asked == []


async def test_a_stuck_prober_is_cut_off_from_a_target_too():
    prober = FakeProber()
    prober.targets[URL] = BLACK_HOLE
    prober.keeps_deadline = False
    outcome, _ = await an_inquirer(prober).ask_target(PROXY, TIMEOUT)
    assert outcome.error is ProbeError.TIMEOUT
    assert asyncio.get_running_loop().time() == (TIMEOUT + SLACK).total_seconds()
    assert prober.in_flight[URL] == 0

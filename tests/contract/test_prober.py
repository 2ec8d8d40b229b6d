"""What the health engine may expect of any prober, held to the real one and to its double."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import NamedTuple

import pytest

from proxy_operator.adapters.probing.prober import ProxyProber
from proxy_operator.domain.health import ProbeError
from proxy_operator.domain.proxy import Scheme
from proxy_operator.health.ports import Prober, ProbeRequest, TargetRequest
from proxy_operator.runtime.clock import SystemClock
from tests.unit.adapters.probing.servers import OK, saying, serving, silent
from tests.unit.health.fakes import BLACK_HOLE, FakeProber, failed, ok

TIMEOUT = timedelta(seconds=0.3)


class World(NamedTuple):
    """A prober, and the addresses of proxies that behave in known ways."""

    prober: Prober
    good: tuple[str, int]
    refusing: tuple[str, int]
    silent: tuple[str, int]

    def target(self, address: tuple[str, int]) -> TargetRequest:
        """What asks the server at an address itself, without a proxy."""
        return TargetRequest(
            url=f"http://{address[0]}:{address[1]}/", expected_status=None, timeout=TIMEOUT
        )


@asynccontextmanager
async def real() -> AsyncIterator[World]:
    prober = ProxyProber(ssl.create_default_context(), SystemClock())
    host = "127.0.0.1"
    with socket.socket() as taken:
        taken.bind((host, 0))
        async with serving(saying(OK)) as good, serving(silent) as quiet:
            yield World(prober, (host, good), taken.getsockname(), (host, quiet))
    prober.close()


@asynccontextmanager
async def fake() -> AsyncIterator[World]:
    prober = FakeProber()
    prober.answers = {"good": ok(5), "refusing": failed(ProbeError.REFUSED), "silent": BLACK_HOLE}
    prober.targets = {f"http://{host}:1/": answer for host, answer in prober.answers.items()}
    yield World(prober, ("good", 1), ("refusing", 1), ("silent", 1))


worlds = pytest.mark.parametrize("world", [real, fake])


def a_request(address: tuple[str, int]) -> ProbeRequest:
    return ProbeRequest(
        host=address[0],
        port=address[1],
        scheme=Scheme.HTTP,
        credentials=None,
        url="http://target.example/",
        expected_status=None,
        timeout=TIMEOUT,
    )


@worlds
async def test_a_success_has_no_error_and_nothing_to_explain(world):
    async with world() as subject:
        outcome = await subject.prober.probe(a_request(subject.good))
    assert (outcome.error, outcome.detail) == (None, "")
    assert timedelta(0) < outcome.latency < TIMEOUT


@worlds
async def test_a_failure_is_an_outcome_with_class_and_clause(world):
    async with world() as subject:
        outcome = await subject.prober.probe(a_request(subject.refusing))
    assert outcome.error is ProbeError.REFUSED
    assert outcome.detail


@worlds
async def test_the_deadline_holds(world):
    async with world() as subject:
        async with asyncio.timeout(TIMEOUT.total_seconds() + 2):
            outcome = await subject.prober.probe(a_request(subject.silent))
    assert outcome.error is ProbeError.TIMEOUT
    assert outcome.latency >= TIMEOUT


@worlds
async def test_a_cancelled_probe_ends_at_once(world):
    async with world() as subject:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await subject.prober.probe(a_request(subject.silent))


@worlds
async def test_a_target_is_asked_without_a_proxy(world):
    async with world() as subject:
        good = await subject.prober.probe_directly(subject.target(subject.good))
        bad = await subject.prober.probe_directly(subject.target(subject.refusing))
    assert (good.error, good.detail) == (None, "")
    assert bad.error is ProbeError.REFUSED
    assert bad.detail


@worlds
async def test_the_deadline_holds_without_a_proxy(world):
    async with world() as subject:
        async with asyncio.timeout(TIMEOUT.total_seconds() + 2):
            outcome = await subject.prober.probe_directly(subject.target(subject.silent))
    assert outcome.error is ProbeError.TIMEOUT

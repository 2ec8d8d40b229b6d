"""The prober against real targets, without a proxy; and what it tells of a refused CONNECT."""

from datetime import timedelta
from typing import Any

import pytest

from proxy_operator.domain.health import ProbeError
from proxy_operator.domain.proxy import Scheme
from proxy_operator.health.ports import ProbeRequest, TargetRequest
from tests.unit.adapters.probing.servers import OK, Reader, Writer, head_of, saying, serving, silent


def directly(port: int, scheme: str = "http", **fields: Any) -> TargetRequest:
    fields.setdefault("expected_status", None)
    fields["timeout"] = timedelta(seconds=fields.pop("timeout", 5.0))
    return TargetRequest(url=f"{scheme}://127.0.0.1:{port}/health?x=1", **fields)


async def test_a_target_is_asked_as_its_clients_ask_it(prober):
    heads: list[bytes] = []

    async def handle(reader: Reader, writer: Writer) -> None:
        heads.append(await head_of(reader))
        writer.write(OK)
        await writer.drain()

    async with serving(handle) as port:
        outcome = await prober.probe_directly(directly(port))
    assert outcome.error is None
    [head] = heads
    assert head.startswith(b"GET /health?x=1 HTTP/1.1\r\n")
    assert b"Proxy-Authorization" not in head


async def test_an_https_target_is_verified(prober, tls):
    async with serving(saying(OK), tls=tls) as port:
        outcome = await prober.probe_directly(directly(port, "https"))
    assert outcome.error is None
    assert outcome.phases.tls is not None
    assert outcome.phases.proxy_connect is None


async def test_an_https_target_with_a_certificate_of_its_own_fails(prober, own_tls):
    async with serving(saying(OK), tls=own_tls) as port:
        outcome = await prober.probe_directly(directly(port, "https"))
    assert outcome.error is ProbeError.TLS
    assert outcome.detail.startswith("no TLS with the target: its certificate is not trusted")


async def test_a_target_that_refuses_is_called_the_target(prober, closed_port):
    outcome = await prober.probe_directly(directly(closed_port))
    assert outcome.error is ProbeError.REFUSED
    assert outcome.detail == "the target refused the connection"


async def test_a_target_whose_name_leads_nowhere(prober):
    request = TargetRequest(
        url="http://name.invalid/", expected_status=None, timeout=timedelta(seconds=5)
    )
    outcome = await prober.probe_directly(request)
    assert outcome.error is ProbeError.DNS
    assert outcome.detail.startswith("the target's name was not resolved")


async def test_a_silent_target_times_out(prober):
    async with serving(silent) as port:
        outcome = await prober.probe_directly(directly(port, timeout=0.2))
    assert (outcome.error, outcome.detail) == (ProbeError.TIMEOUT, "took too long: the answer")


@pytest.mark.parametrize(
    ("answer", "expected", "error"),
    [
        (b"HTTP/1.1 503 Gone\r\n\r\n", None, ProbeError.STATUS),
        (b"HTTP/1.1 503 Wanted\r\n\r\n", 503, None),
        # Not a proxy, so this is a status like others.
        (b"HTTP/1.1 407 Odd\r\n\r\n", None, ProbeError.STATUS),
        (b"SSH-2.0-x\r\n\r\n", None, ProbeError.PROTOCOL),
    ],
    ids=["503", "503 as expected", "407", "not HTTP"],
)
async def test_what_counts_as_an_answer_is_the_same_as_through_a_proxy(
    prober, answer, expected, error
):
    async with serving(saying(answer)) as port:
        outcome = await prober.probe_directly(directly(port, expected_status=expected))
    assert outcome.error is error
    assert "proxy" not in outcome.detail


@pytest.mark.parametrize("status", [403, 502])
async def test_a_refused_connect_is_told_from_the_targets_own_answers(prober, status):
    async with serving(saying(b"HTTP/1.1 %d No\r\n\r\n" % status)) as port:
        outcomes = [
            await prober.probe(
                ProbeRequest(
                    host="127.0.0.1",
                    port=port,
                    scheme=Scheme.HTTP,
                    credentials=None,
                    url=f"{scheme}://target.example/",
                    expected_status=None,
                    timeout=timedelta(seconds=5),
                )
            )
            for scheme in ("https", "http")
        ]
    assert [outcome.error for outcome in outcomes] == [ProbeError.STATUS] * 2
    assert [outcome.connect_status for outcome in outcomes] == [status, None]

"""The prober against real sockets: every kind of proxy, good and bad."""

import asyncio
import errno
import os
import resource
import socket
import ssl
from collections.abc import Iterator
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest

from proxy_operator.adapters.probing.connect import Address, Resolver
from proxy_operator.adapters.probing.fault import FailedProbeError
from proxy_operator.domain.health import ProbeError
from proxy_operator.domain.proxy import Scheme
from proxy_operator.domain.secret import Credentials
from proxy_operator.health.ports import LocalProbeError, ProbeOutcome, ProbeRequest
from tests.unit.adapters.probing.servers import (
    OK,
    Proxy,
    Reader,
    Writer,
    head_of,
    reset,
    resetting,
    saying,
    serving,
    silent,
)

HTTP = "http://target.example/health?x=1"
HTTPS = "https://target.example/health"
IN_TIME = 5.0
BRIEF = 0.3


def a_request(port: int, url: str = HTTP, **fields: Any) -> ProbeRequest:
    fields.setdefault("host", "127.0.0.1")
    fields.setdefault("scheme", Scheme.HTTP)
    fields.setdefault("credentials", None)
    fields.setdefault("expected_status", None)
    fields["timeout"] = timedelta(seconds=fields.pop("timeout", IN_TIME))
    return ProbeRequest(port=port, url=url, **fields)


def error_of(outcome: ProbeOutcome) -> tuple[ProbeError | None, str]:
    return outcome.error, outcome.detail


async def test_a_plain_target_through_a_proxy(prober):
    proxy = Proxy()
    async with serving(saying(OK)) as target:
        proxy.upstream = target
        async with serving(proxy) as port:
            outcome = await prober.probe(a_request(port))
    assert outcome.error is None
    assert proxy.heads[0].startswith("GET http://target.example/health?x=1 HTTP/1.1\r\n")
    assert "Host: target.example\r\n" in proxy.heads[0]
    assert "Connection: close\r\n" in proxy.heads[0]
    assert len(proxy.heads[0]) < 200
    phases = outcome.phases
    assert phases.connect is not None
    assert phases.first_byte is not None
    assert phases.proxy_connect is phases.tls is None
    assert phases.connect + phases.first_byte <= outcome.latency.total_seconds() + 1e-6


async def test_an_https_target_through_a_proxy(prober, tls):
    proxy = Proxy()
    async with serving(saying(OK), tls=tls) as target:
        proxy.upstream = target
        async with serving(proxy) as port:
            outcome = await prober.probe(a_request(port, HTTPS))
    assert error_of(outcome) == (None, "")
    assert proxy.heads[0].startswith("CONNECT target.example:443 HTTP/1.1\r\n")
    phases = outcome.phases
    spans = [phases.connect, phases.proxy_connect, phases.tls, phases.first_byte]
    assert all(span is not None and span >= 0 for span in spans)
    total = sum(span for span in spans if span is not None)
    assert total == pytest.approx(outcome.latency.total_seconds(), abs=0.001)


async def test_the_end_of_the_handshake_and_the_request_leave_together(prober, tls):
    proxy = Proxy()
    async with serving(saying(OK), tls=tls) as target:
        proxy.upstream = target
        async with serving(proxy) as port:
            assert (await prober.probe(a_request(port, HTTPS))).error is None
    # ClientHello, then Finished and the request: two flights and no third.
    assert len(proxy.after_connect) == 2


@pytest.mark.parametrize("url", [HTTP, HTTPS])
async def test_an_https_proxy(prober, tls, url):
    proxy = Proxy()
    async with serving(saying(OK), tls=tls if url == HTTPS else None) as target:
        proxy.upstream = target
        async with serving(proxy, tls=tls) as port:
            outcome = await prober.probe(a_request(port, url, scheme=Scheme.HTTPS))
    assert error_of(outcome) == (None, "")
    assert proxy.connections == 1


@pytest.fixture(scope="session")
def ipv6() -> None:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")


@pytest.mark.usefixtures("ipv6")
async def test_an_ipv6_proxy_and_an_ipv6_target(prober, tls):
    proxy = Proxy()
    async with serving(saying(OK), tls=tls) as target:
        proxy.upstream = target
        async with serving(proxy, host="::1", tls=tls) as port:
            outcome = await prober.probe(
                a_request(port, "https://[::1]/", host="::1", scheme=Scheme.HTTPS)
            )
    assert error_of(outcome) == (None, "")
    assert proxy.heads[0].startswith("CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n")


async def test_a_named_proxy(prober):
    async with serving(saying(OK)) as port:
        outcome = await prober.probe(a_request(port, host="localhost"))
    assert error_of(outcome) == (None, "")


@pytest.mark.parametrize("url", [HTTP, HTTPS])
@pytest.mark.parametrize("password", ["p$x", "p@s:s/#%", "\"q'", "x" * 64, "пароль ключ €"])
async def test_credentials_reach_the_proxy_as_they_are(prober, tls, url, password):
    proxy = Proxy(credentials=f"crawler:{password}")
    credentials = Credentials("crawler", password)
    async with serving(saying(OK), tls=tls if url == HTTPS else None) as target:
        proxy.upstream = target
        async with serving(proxy) as port:
            right = await prober.probe(a_request(port, url, credentials=credentials))
            wrong = await prober.probe(a_request(port, url, credentials=Credentials("crawler", "")))
            none = await prober.probe(a_request(port, url))
    assert error_of(right) == (None, "")
    assert error_of(wrong) == (
        ProbeError.AUTH,
        "the proxy did not accept the credentials (407)",
    )
    assert error_of(none) == (ProbeError.AUTH, "the proxy asks for credentials (407)")


async def test_credentials_do_not_reach_an_https_target(prober, tls):
    seen: list[bytes] = []

    async def target(reader: Reader, writer: Writer) -> None:
        seen.append(await head_of(reader))
        writer.write(OK)

    proxy = Proxy(credentials="u:p")
    async with serving(target, tls=tls) as upstream:
        proxy.upstream = upstream
        async with serving(proxy) as port:
            await prober.probe(a_request(port, HTTPS, credentials=Credentials("u", "p")))
    assert seen
    assert b"authorization" not in seen[0].lower()


async def test_every_probe_is_a_fresh_connection(prober):
    proxy = Proxy()
    keep_alive = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok"
    async with serving(saying(keep_alive, then_wait=True)) as target:
        proxy.upstream = target
        async with serving(proxy) as port:
            for _ in range(3):
                assert (await prober.probe(a_request(port))).error is None
    assert proxy.connections == 3


async def test_keeps_old_connections_but_refuses_new_ones(prober):
    """A proxy at the end of its strength looks fine to whoever reuses connections."""
    async with serving(saying(OK, then_wait=True)) as port:
        old_reader, old_writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await prober.probe(a_request(port))).error is None
    outcome = await prober.probe(a_request(port))
    assert outcome.error is ProbeError.REFUSED
    old_writer.close()
    del old_reader


async def test_the_environment_has_no_say(prober, monkeypatch, closed_port):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port}")
        monkeypatch.setenv(name.lower(), f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("no_proxy", "*")
    proxy = Proxy()
    async with serving(saying(OK)) as target:
        proxy.upstream = target
        async with serving(proxy) as port:
            outcome = await prober.probe(a_request(port))
    assert outcome.error is None
    assert proxy.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + OK,
        b"HTTP/1.0 204 No Content\r\n\r\n",
        b"HTTP/1.1 200\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
@pytest.mark.parametrize("in_pieces", [False, True])
async def test_answers_that_count_as_success(prober, answer, in_pieces):
    parts = [answer[i : i + 1] for i in range(len(answer))] if in_pieces else [answer]
    async with serving(saying(*parts, then_wait=True)) as port:
        outcome = await prober.probe(a_request(port))
    assert error_of(outcome) == (None, "")


async def test_latency_ends_at_the_first_byte_of_the_final_answer(prober):
    parts = (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP", OK[4:])
    async with serving(saying(*parts, pause=0.15)) as port:
        outcome = await prober.probe(a_request(port))
    assert outcome.error is None
    assert 0.14 <= outcome.latency.total_seconds() < 0.29


async def test_a_long_answer_is_not_read(prober):
    written = 0

    async def endless(reader: Reader, writer: Writer) -> None:
        nonlocal written
        await head_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()
            written += 65536

    async with serving(endless) as port:
        outcome = await prober.probe(a_request(port))
    assert outcome.error is None
    assert outcome.latency.total_seconds() < IN_TIME


@pytest.mark.parametrize(
    ("status", "expected", "error"),
    [
        (200, None, None),
        (299, None, None),
        (301, None, ProbeError.STATUS),
        (404, None, ProbeError.STATUS),
        (503, None, ProbeError.STATUS),
        (204, 204, None),
        (301, 301, None),
        (200, 204, ProbeError.STATUS),
        (407, None, ProbeError.AUTH),
        (407, 407, ProbeError.AUTH),
        (101, None, ProbeError.PROTOCOL),
    ],
)
async def test_which_status_is_success(prober, status, expected, error):
    async with serving(saying(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status)) as port:
        outcome = await prober.probe(a_request(port, expected_status=expected))
    assert outcome.error is error


async def test_nobody_listens(prober, closed_port):
    outcome = await prober.probe(a_request(closed_port))
    assert error_of(outcome) == (ProbeError.REFUSED, "the proxy refused the connection")


BAD_ANSWERS = [
    (saying(), ProbeError.PROTOCOL, "the proxy hung up without an answer"),
    (saying(b"HTTP/1.1 2"), ProbeError.PROTOCOL, "the proxy hung up in the middle of its answer"),
    (
        saying(b"HTTP/1.1 200 OK\r\nServer: x\r\n"),
        ProbeError.PROTOCOL,
        "the proxy hung up in the middle of its answer",
    ),
    (
        saying(b"SSH-2.0-OpenSSH_9.6\r\n", then_wait=True),
        ProbeError.PROTOCOL,
        "the proxy does not speak HTTP",
    ),
    (
        saying(b"\x05\x00\x16\x03\x01", then_wait=True),
        ProbeError.PROTOCOL,
        "the proxy does not speak HTTP",
    ),
    (
        saying(b"HTTP/1.1 two hundred\r\n\r\n"),
        ProbeError.PROTOCOL,
        "the proxy does not speak HTTP",
    ),
    (
        saying(b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n"),
        ProbeError.PROTOCOL,
        "the proxy does not speak HTTP",
    ),
    (saying(b"\r\n\r\n"), ProbeError.PROTOCOL, "the proxy does not speak HTTP"),
    (
        saying(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 20_000, then_wait=True),
        ProbeError.PROTOCOL,
        "the proxy sends a head without end",
    ),
    (
        saying(b"HTTP/1.1 103 X\r\n\r\n" * 2_000, then_wait=True),
        ProbeError.PROTOCOL,
        "the proxy sends a head without end",
    ),
    (resetting, ProbeError.PROTOCOL, "the connection broke during the answer"),
    (silent, ProbeError.TIMEOUT, "took too long: the answer"),
    (
        saying(*[bytes([c]) for c in OK], pause=0.05),
        ProbeError.TIMEOUT,
        "took too long: the answer",
    ),
    (
        saying(b"HTTP/1.1 503 Service Unavailable\r\n\r\n"),
        ProbeError.STATUS,
        "the answer has status 503, not 2xx",
    ),
]


@pytest.mark.parametrize(("handler", "error", "detail"), BAD_ANSWERS)
async def test_bad_answers_to_a_plain_probe(prober, handler, error, detail):
    timeout = BRIEF if error is ProbeError.TIMEOUT else IN_TIME
    async with serving(handler) as port:
        outcome = await prober.probe(a_request(port, timeout=timeout))
    assert error_of(outcome) == (error, detail)
    if error is ProbeError.TIMEOUT:
        assert BRIEF * 0.9 < outcome.latency.total_seconds() < BRIEF + 2


def in_tunnel(behave: Any) -> Any:
    async def handle(reader: Reader, writer: Writer) -> None:
        await head_of(reader)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await reader.read(1)
        await behave(reader, writer)

    return handle


async def _hang_up(_reader: Reader, _writer: Writer) -> None:
    return


async def _reset(_reader: Reader, writer: Writer) -> None:
    reset(writer)


async def _plain_text(_reader: Reader, writer: Writer) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await asyncio.sleep(60)


BAD_TUNNELS = [
    (
        saying(b"HTTP/1.1 503 Service Unavailable\r\n\r\n"),
        ProbeError.STATUS,
        "the proxy answered CONNECT with status 503",
    ),
    (
        saying(b"HTTP/1.1 302 Found\r\nLocation: http://login/\r\n\r\n"),
        ProbeError.STATUS,
        "the proxy answered CONNECT with status 302",
    ),
    (saying(b"HTTP/1.1 407 X\r\n\r\n"), ProbeError.AUTH, "the proxy asks for credentials (407)"),
    (saying(b"SSH-2.0-x\r\n"), ProbeError.PROTOCOL, "the proxy does not speak HTTP"),
    (saying(), ProbeError.PROTOCOL, "the proxy hung up without an answer"),
    (silent, ProbeError.TIMEOUT, "took too long: the proxy's answer to CONNECT"),
    (
        in_tunnel(silent),
        ProbeError.TIMEOUT,
        "took too long: the TLS handshake with the target",
    ),
    (
        in_tunnel(_hang_up),
        ProbeError.TLS,
        "no TLS with the target: it hung up during the handshake",
    ),
    (
        in_tunnel(_reset),
        ProbeError.TLS,
        "the connection broke during the TLS handshake with the target",
    ),
    (in_tunnel(_plain_text), ProbeError.TLS, "no TLS with the target: wrong version number"),
]


@pytest.mark.parametrize(("handler", "error", "detail"), BAD_TUNNELS)
async def test_bad_answers_to_a_tunnelled_probe(prober, handler, error, detail):
    timeout = BRIEF if error is ProbeError.TIMEOUT else IN_TIME
    async with serving(handler) as port:
        outcome = await prober.probe(a_request(port, HTTPS, timeout=timeout))
    assert error_of(outcome) == (error, detail)


async def test_a_proxy_with_its_own_certificate_inside_connect(prober, own_tls):
    proxy = Proxy()
    async with serving(saying(OK), tls=own_tls) as interceptor:
        proxy.upstream = interceptor
        async with serving(proxy) as port:
            outcome = await prober.probe(a_request(port, HTTPS))
    assert outcome.error is ProbeError.TLS
    assert outcome.detail.startswith("no TLS with the target: its certificate is not trusted: ")
    assert proxy.connections == 1


async def test_a_certificate_for_another_name(prober, tls_of_other_name):
    proxy = Proxy()
    async with serving(saying(OK), tls=tls_of_other_name) as target:
        proxy.upstream = target
        async with serving(proxy) as port:
            outcome = await prober.probe(a_request(port, HTTPS))
    assert outcome.error is ProbeError.TLS
    assert "Hostname mismatch" in outcome.detail


async def test_an_https_proxy_nobody_vouches_for(prober, own_tls):
    async with serving(saying(OK), tls=own_tls) as port:
        outcome = await prober.probe(a_request(port, scheme=Scheme.HTTPS))
    assert outcome.error is ProbeError.TLS
    assert outcome.detail.startswith("no TLS with the proxy: its certificate is not trusted: ")


async def test_an_https_proxy_that_speaks_plain(prober):
    async def plain(reader: Reader, writer: Writer) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await asyncio.sleep(60)

    async with serving(plain) as port:
        outcome = await prober.probe(a_request(port, scheme=Scheme.HTTPS))
    assert error_of(outcome) == (ProbeError.TLS, "no TLS with the proxy: wrong version number")


async def test_a_target_that_hangs_up_inside_tls(prober, tls):
    proxy = Proxy()
    async with serving(saying(b"HTTP/1.1 200"), tls=tls) as target:
        proxy.upstream = target
        async with serving(proxy) as port:
            outcome = await prober.probe(a_request(port, HTTPS))
    assert outcome.error is ProbeError.PROTOCOL


async def test_a_name_that_does_not_exist(prober):
    outcome = await prober.probe(a_request(3128, host="proxy.invalid"))
    assert outcome.error is ProbeError.DNS
    assert outcome.detail.startswith("the proxy's name was not resolved: ")


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + ".example"])
async def test_a_name_that_cannot_exist(prober, host):
    outcome = await prober.probe(a_request(3128, host=host))
    assert outcome.error is ProbeError.DNS


@pytest.mark.parametrize(
    ("url", "clause"),
    [
        ("http://target.example:99999/", "Port out of range"),
        ("http://u:p@target.example/", "must not carry credentials"),
        ("http://", "name a host"),
    ],
)
async def test_a_url_nobody_can_fetch(prober, url, clause):
    outcome = await prober.probe(a_request(3128, url))
    assert outcome.error is ProbeError.PROTOCOL
    assert clause in outcome.detail
    assert ":p@" not in outcome.detail


async def test_a_full_listen_queue_times_out_while_connecting(prober, clogged):
    outcome = await prober.probe(a_request(clogged[1], timeout=BRIEF))
    assert error_of(outcome) == (ProbeError.TIMEOUT, "took too long: connecting to the proxy")


class _Known(Resolver):
    """A resolver whose names are known beforehand."""

    def __init__(self, *addresses: tuple[str, int]) -> None:
        super().__init__()
        self._addresses = [Address(*address) for address in addresses]

    async def resolve(self, host: str, port: int, peer: str) -> list[Address]:
        return self._addresses


@pytest.fixture
def clogged() -> Iterator[tuple[str, int]]:
    """An address that neither takes nor refuses connections."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()
        for filler in fillers:
            filler.close()


async def test_the_next_address_is_tried_when_one_refuses(prober, closed_port):
    async with serving(saying(OK)) as port:
        prober._resolver = _Known(("127.0.0.1", closed_port), ("127.0.0.1", port))
        outcome = await prober.probe(a_request(port, host="two.example"))
    assert outcome.error is None
    assert outcome.latency.total_seconds() < 0.25


async def test_the_next_address_is_tried_when_one_is_slow(prober, clogged):
    async with serving(saying(OK)) as port:
        prober._resolver = _Known(clogged, ("127.0.0.1", port))
        outcome = await prober.probe(a_request(port, host="two.example"))
    assert outcome.error is None
    assert 0.24 <= outcome.latency.total_seconds() < 2


async def test_only_allowed_addresses_of_a_name_are_connected_to(prober):
    refusing = saying(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    async with serving(refusing) as port, serving(saying(OK), host="127.0.0.2") as other:
        prober._resolver = _Known(("127.0.0.1", port), ("127.0.0.2", other))
        networks = (ip_network("127.0.0.2/32"),)
        outcome = await prober.probe(a_request(port, host="two.example", networks=networks))
    assert error_of(outcome) == (None, "")


async def test_no_credentials_leave_for_an_address_that_is_not_allowed(prober):
    reached = asyncio.Event()

    async def note(_reader: Reader, _writer: Writer) -> None:
        reached.set()

    async with serving(note) as port:
        outcome = await prober.probe(
            a_request(
                port,
                host="localhost",
                networks=(ip_network("10.1.0.0/16"),),
                credentials=Credentials(username="u", password="p"),
            )
        )
        await asyncio.sleep(0.02)
    assert outcome.error is ProbeError.NOT_ALLOWED
    assert outcome.detail == f"its endpoint localhost:{port} is not allowed by --allow-endpoints"
    assert not reached.is_set()


async def test_all_addresses_refuse(prober, closed_port):
    prober._resolver = _Known(("127.0.0.1", closed_port), ("127.0.0.1", closed_port))
    outcome = await prober.probe(a_request(closed_port, host="two.example"))
    assert error_of(outcome) == (ProbeError.REFUSED, "the proxy refused the connection")


async def test_no_address_answers(prober, clogged):
    prober._resolver = _Known(clogged, clogged)
    outcome = await prober.probe(a_request(1, host="two.example", timeout=0.4))
    assert outcome.error is ProbeError.TIMEOUT


async def test_a_resolver_that_does_not_answer(prober):
    class Stuck(Resolver):
        async def resolve(self, host: str, port: int, peer: str) -> list[Address]:
            await asyncio.sleep(60)
            raise FailedProbeError(ProbeError.DNS, "never")

    prober._resolver = Stuck()
    outcome = await prober.probe(a_request(1, host="x.example", timeout=BRIEF))
    assert error_of(outcome) == (ProbeError.DNS, "took too long: resolving the proxy's name")


async def test_no_free_descriptor_is_not_the_proxys_fault(prober):
    async with serving(saying(OK)) as port:
        await prober.probe(a_request(port))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        lowest_free = os.dup(0)
        os.close(lowest_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
        try:
            with pytest.raises(LocalProbeError, match=os.strerror(errno.EMFILE)):
                await prober.probe(a_request(port))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("url", [HTTP, HTTPS])
async def test_no_probe_leaves_a_descriptor_behind(prober, url, own_tls, closed_port):
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    async with serving(silent) as quiet, serving(Proxy(closed_port)) as broken:
        await prober.probe(a_request(broken, url))
        await asyncio.sleep(0.05)
        before = descriptors()
        for port in (quiet, closed_port, broken):
            outcomes = await asyncio.gather(
                *(prober.probe(a_request(port, url, timeout=0.1)) for _ in range(10))
            )
            assert all(outcome.error for outcome in outcomes)
        probe = asyncio.ensure_future(prober.probe(a_request(quiet, url)))  # noqa: TID251 - cancelled below
        await asyncio.sleep(0.05)
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe
        for _ in range(50):
            await asyncio.sleep(0.02)
            if descriptors() <= before:
                break
        # The servers' own ends of the silent connections stay open until they stop.
        assert descriptors() <= before + 11


def test_contexts_verify(client_context: ssl.SSLContext):
    assert client_context.verify_mode is ssl.CERT_REQUIRED
    assert client_context.check_hostname

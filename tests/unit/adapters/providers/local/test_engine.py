"""The proxy as its clients and their targets meet it, in a process of its own."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proxy_operator.adapters.providers.local.instances import Instances
from proxy_operator.adapters.providers.local.reach import Reach, write_reach
from proxy_operator.domain.proxy import LocalBlock
from proxy_operator.domain.secret import Credentials
from proxy_operator.provisioning.targets import parse_allowed_target
from proxy_operator.runtime.clock import SystemClock
from tests.unit.adapters.providers.local.conftest import a_request, when_running
from tests.unit.adapters.providers.local.targets import (
    OK,
    Target,
    a_target,
    basic,
    connected,
    exchange,
    get,
    pause,
    read_until,
    status,
)

CREDENTIALS = Credentials("crawler", "p@s:s/#%")
GIVEN = basic("crawler", "p@s:s/#%")


@pytest.fixture(scope="module")
def open_port(start: Callable[..., int]) -> int:
    return start()


@pytest.fixture(scope="module")
def closed_port(start: Callable[..., int]) -> int:
    return start(CREDENTIALS)


@pytest.fixture
def target() -> Iterator[Target]:
    with a_target() as one:
        yield one


def tunnel(client: socket.socket, target: Target, extra: bytes = b"") -> bytes:
    authority = target.authority.encode()
    client.sendall(b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (authority, authority, extra))
    return read_until(client, lambda raw: b"\r\n\r\n" in raw)


# What targets see.


def test_a_target_sees_the_request_and_nothing_of_the_proxy(closed_port: int, target: Target):
    extra = (
        GIVEN
        + b"Proxy-Connection: keep-alive\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n"
        + b"Keep-Alive: timeout=5\r\nTE: trailers\r\nAccept: */*\r\n"
    )
    answer = get(closed_port, target, extra)
    assert answer == OK
    (seen,) = target.seen
    assert seen.raw.startswith(b"GET /x?a=b HTTP/1.1\r\n")
    assert seen.headers == {"host": target.authority, "accept": "*/*", "connection": "close"}


def test_a_tunnel_carries_bytes_unchanged(closed_port: int, target: Target):
    target.answer = bytes(range(256)) * 64
    request = b"GET / HTTP/1.1\r\nVia: mine\r\nProxy-Connection: x\r\n\r\n"
    with connected(closed_port) as client:
        assert tunnel(client, target, GIVEN) == b"HTTP/1.1 200 Connection established\r\n\r\n"
        client.sendall(request)
        assert read_until(client, lambda _: False) == target.answer
    assert target.seen[0].raw == request


def test_bytes_sent_with_the_connect_are_not_lost(open_port: int, target: Target):
    authority = target.authority.encode()
    answer = exchange(
        open_port,
        b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n\r\nGET / HTTP/1.1\r\n\r\n" % (authority, authority),
    )
    assert answer.endswith(OK)
    assert target.seen[0].raw == b"GET / HTTP/1.1\r\n\r\n"


def test_a_body_with_a_length_is_streamed(closed_port: int, target: Target):
    body = b"x" * 300_000
    authority = target.authority.encode()
    head = b"POST http://%b/ HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%b\r\n" % (
        authority,
        len(body),
        GIVEN,
    )
    assert exchange(closed_port, head + body) == OK
    assert target.seen[0].body == body
    assert target.seen[0].headers == {
        "host": "a",
        "content-length": str(len(body)),
        "connection": "close",
    }


@pytest.mark.parametrize("pieces", [(b"hello ", b"world"), ()])
def test_a_chunked_body_arrives(open_port: int, target: Target, pieces: tuple[bytes, ...]):
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in pieces) + b"0\r\n\r\n"
    head = b"POST http://%b/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" % (
        target.authority.encode()
    )
    with connected(open_port) as client:
        client.sendall(head)
        pause(0.05)  # a client that sends its body apart from the head
        client.sendall(chunks)
        assert read_until(client, lambda _: False) == OK
    body = target.seen[0].body
    assert body.endswith(b"0\r\n\r\n")
    assert b"".join(pieces) in body


def test_a_second_request_does_not_reach_the_first_ones_host(closed_port: int, target: Target):
    target.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    target.linger = 0.5
    authority = target.authority.encode()
    with connected(closed_port) as client:
        client.sendall(b"GET http://%b/ HTTP/1.1\r\nHost: a\r\n%b\r\n" % (authority, GIVEN))
        assert read_until(client, lambda raw: raw.endswith(b"ok")) == target.answer
        client.sendall(b"GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: b\r\n%b\r\n" % GIVEN)
        assert read_until(client, lambda _: False) == b""
    assert not [one for one in target.seen if b"Proxy-Authorization" in one.raw]
    assert not [one for one in target.seen if b"Host: b" in one.raw]


def test_an_upgraded_connection_is_a_tunnel(open_port: int, target: Target):
    target.answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
    target.linger = 2
    with connected(open_port) as client:
        client.sendall(
            b"GET http://%b/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
            b"Upgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n" % target.authority.encode()
        )
        assert read_until(client, lambda raw: raw.endswith(b"\r\n\r\n")) == target.answer
        client.sendall(b"\x81\x02hi")
        assert read_until(client, lambda _: False) == b""
    assert target.seen[0].headers["upgrade"] == "websocket"
    assert target.seen[0].headers["connection"] == "Upgrade"
    assert target.seen[1].raw == b"\x81\x02hi"


def test_requests_leave_from_the_egress_address(start: Callable[..., int]):
    port = start(local=LocalBlock(egress_address="127.0.0.2"))
    with a_target() as target:
        assert get(port, target) == OK
        target.host = "localhost"
        assert get(port, target) == OK
        with connected(port) as client:
            tunnel(client, target)
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            read_until(client, lambda _: False)
        assert [one.peer[0] for one in target.seen] == ["127.0.0.2"] * 3


def test_a_target_may_have_an_ipv6_address(open_port: int):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    with a_target("::1") as target:
        assert get(open_port, target) == OK
        with connected(open_port) as client:
            assert tunnel(client, target).startswith(b"HTTP/1.1 200 ")


# Who may use it.


@pytest.mark.parametrize("given", [b"", basic("crawler", "wrong"), basic("x", "p@s:s/#%")])
def test_without_the_right_credentials_nothing_passes(
    closed_port: int, target: Target, given: bytes
):
    answer = get(closed_port, target, given)
    assert status(answer) == 407
    assert b"Proxy-Authenticate: Basic" in answer
    with connected(closed_port) as client:
        assert status(tunnel(client, target, given)) == 407
    assert target.seen == []


def test_a_refused_client_reads_the_refusal_while_it_still_sends(closed_port: int, target: Target):
    authority = target.authority.encode()
    head = b"POST http://%b/ HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n" % authority
    with connected(closed_port) as client:
        for piece in (head, b"x" * 1000, b"x" * 1000):  # a reset would fail the last one
            client.sendall(piece)
            pause(0.05)
        assert status(read_until(client, lambda _: False)) == 407


@pytest.mark.parametrize(
    "password", ["p$x", "\"q'", "x" * 64, "pässwörd", "密码🔑"], ids=lambda one: ascii(one[:8])
)
def test_every_password_works_end_to_end(start: Callable[..., int], target: Target, password: str):
    port = start(Credentials("crawler", password))
    assert status(get(port, target, basic("crawler", password))) == 200
    assert status(get(port, target, basic("crawler", password[:-1]))) == 407


# What goes wrong.


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        (b"\x16\x03\x01\x00\xa5\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET http:// HTTP/1.1\r\n\r\n", 400),
        (b"POST http://127.0.0.1/ HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400),
        (b"POST http://127.0.0.1/ HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST http://127.0.0.1/ HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (b"CONNECT 127.0.0.1:99999 HTTP/1.1\r\n\r\n", 502),
        (b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n", 502),
        (b"GET http://127.0.0.1:1/ HTTP/1.1\r\n\r\n", 502),
        (b"GET http://\xff\xfe.invalid/ HTTP/1.1\r\n\r\n", 502),
        (b"GET http://127.0.0.1/ HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", 431),
    ],
    ids=lambda one: repr(one[:40]) if isinstance(one, bytes) else str(one),
)
def test_what_cannot_be_served_is_answered(open_port: int, raw: bytes, answer: int):
    assert status(exchange(open_port, raw)) == answer


def test_a_client_that_leaves_early_does_no_harm(open_port: int, target: Target):
    for raw in (b"", b"GET http://", b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % target.port):
        with connected(open_port) as client:
            client.sendall(raw)
    assert get(open_port, target) == OK


def test_a_target_that_never_answers_stalls_nobody_else(open_port: int, target: Target):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(address)
        with connected(open_port) as stuck:
            stuck.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % address[1])
            pause(0.1)
            started = time.monotonic()
            assert get(open_port, target) == OK
            assert time.monotonic() - started < 2
        for filler in fillers:
            filler.close()


def test_a_client_that_takes_nothing_costs_no_memory(start: Callable[..., int]):
    port = start()
    pid = _listener_of(port)
    before = _resident_bytes(pid)
    with a_target() as target, connected(port) as client:
        target.answer = b"x" * 64_000_000
        tunnel(client, target)
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        pause(0.5)  # long enough for a proxy without bounds to take all of it
        assert _resident_bytes(pid) - before < 8_000_000


def test_a_target_that_takes_nothing_costs_no_memory(start: Callable[..., int]):
    port = start()
    pid = _listener_of(port)
    before = _resident_bytes(pid)
    with socket.create_server(("127.0.0.1", 0)) as deaf, connected(port) as client:
        client.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % deaf.getsockname()[1])
        read_until(client, lambda raw: b"\r\n\r\n" in raw)
        client.settimeout(0.5)
        with pytest.raises(TimeoutError):
            client.sendall(b"x" * 64_000_000)
        assert _resident_bytes(pid) - before < 8_000_000


def test_many_clients_at_once_are_all_served(open_port: int, target: Target):
    answers: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: answers.append(get(open_port, target))) for _ in range(40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [OK] * 40


def test_a_connection_leaves_no_descriptor_behind(open_port: int, target: Target):
    pid = _listener_of(open_port)
    get(open_port, target)
    before = _descriptors(pid)
    for _ in range(5):
        get(open_port, target)
        exchange(open_port, b"junk\r\n\r\n")
    _settles(lambda: _descriptors(pid) <= before)


def _settles(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        pause(0.02)


def _descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def _listener_of(port: int) -> int:
    """Find the process that listens on a port, through the socket's inode."""
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    inode = next(row[9] for row in rows if row[1] == f"0100007F:{port:04X}" and row[3] == "0A")
    for link in Path("/proc").glob("[0-9]*/fd/4"):
        try:
            if str(link.readlink()) == f"socket:[{inode}]":
                return int(link.parts[2])
        except OSError:
            continue
    raise LookupError(port)


# Where no client gets.


@pytest.mark.parametrize("method", [b"GET http://%b/ HTTP/1.1", b"CONNECT %b HTTP/1.1"])
def test_what_the_operator_keeps_for_itself_is_refused_as_soon_as_it_says_so(
    instances: Instances, root: Path, target: Target, method: bytes
):
    request = a_request()
    instances.create(request, threading.Event())
    port = when_running(instances, request.name).port
    assert port is not None
    assert status(get(port, target)) == 200
    write_reach(root, Reach(api_ports=(target.port,)))
    host = f"localhost:{target.port}".encode()
    answer = exchange(port, method % host + b"\r\nHost: x\r\n\r\n")
    assert status(answer) == 403
    assert b"--allow-targets" in answer
    assert len(target.seen) == 1


def test_from_other_machines_this_one_is_reached_where_it_is_allowed(root: Path, target: Target):
    everywhere = Instances(root, bind="0.0.0.0", cluster_id="cluster-1", clock=SystemClock())
    request = a_request(credentials=CREDENTIALS)
    everywhere.create(request, threading.Event())
    port = when_running(everywhere, request.name).port
    assert port is not None
    assert status(get(port, target)) == 407
    assert status(get(port, target, GIVEN)) == 403
    assert target.seen == []
    write_reach(root, Reach(allowed=(parse_allowed_target(target.authority),)))
    assert status(get(port, target, GIVEN)) == 200

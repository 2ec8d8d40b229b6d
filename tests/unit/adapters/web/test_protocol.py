"""Hostile and broken clients on a real loopback socket: the right answer or a closed connection."""

import asyncio
import contextlib
import gc
import random
from datetime import timedelta

import msgspec
import pytest

from proxy_operator.adapters.web.server import HttpServer
from tests.unit.adapters.web.harness import QUICK, Api, Client, connected, request, serving
from tests.unit.discovery.fleet import Fleet, a_leasable

CHUNKED = "Transfer-Encoding: chunked"


@pytest.fixture
def api() -> Api:
    return Api(Fleet().add(a_leasable("p1", attributes={"region": "eu"})))


@pytest.fixture
async def server(api):
    async with serving(api.endpoint) as running:
        yield running


async def is_well(server: HttpServer) -> bool:
    async with connected(server) as client:
        return (await client.ask(request())).status == 200


def post(*headers: str, body: bytes = b"", raw: bytes = b"") -> bytes:
    return request("POST", "/v1/leases", *headers, body=body) + raw


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
        b"hello there\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
        b"GET /healthz HTTP/2.0\r\nHost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\x00b\r\n\r\n",
        b"GET /healthz HTTP/1.1\nHost: a\n\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /h\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://h HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
        b"POST /v1/leases HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/leases HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"POST /v1/leases HTTP/1.1\r\nHost: a\r\nContent-Length: " + b"9" * 40 + b"\r\n\r\n{}",
    ],
    ids=lambda data: repr(data[:48]),
)
async def test_what_is_not_http_is_a_400_and_the_end(server, data):
    async with connected(server) as client:
        reply = await client.ask(data)
        assert (reply.status, reply.error) == (400, "invalid_request")
        assert reply.headers["connection"] == "close"
        assert await client.is_closed()


@pytest.mark.parametrize(
    "headers",
    [
        ("Transfer-Encoding: gzip",),
        (CHUNKED, "Content-Length: 2"),
        ("Content-Length: 2", CHUNKED),
    ],
)
async def test_ambiguous_framing_is_refused_and_leases_nothing(server, api, headers):
    async with connected(server) as client:
        reply = await client.ask(post(*headers, raw=b"2\r\n{}\r\n0\r\n\r\n"))
        assert reply.status == 400
        assert await client.is_closed()
    assert api.fleet.leases.total_leases() == 0


@pytest.mark.parametrize(
    "chunks", [b"zz\r\n{}\r\n0\r\n\r\n", b"2\r\n{}X\r\n0\r\n\r\n", b"-2\r\n{}\r\n0\r\n\r\n"]
)
async def test_malformed_chunks_are_refused_and_lease_nothing(server, api, chunks):
    async with connected(server) as client:
        client.send(post(CHUNKED))
        await asyncio.sleep(0.05)
        assert (await client.ask(chunks)).status == 400
        assert await client.is_closed()
    assert api.fleet.leases.total_leases() == 0


async def test_a_chunked_body_with_extension_and_trailer_is_read(server):
    async with connected(server) as client:
        body = b"1;x=y\r\n{\r\n1\r\n}\r\n0\r\nAuthorization: Bearer wrong\r\n\r\n"
        assert (await client.ask(post(CHUNKED, raw=body))).status == 201
        assert (await client.ask(request())).status == 200


async def test_a_trailer_is_no_header(server):
    async with connected(server) as client:
        lines = b"POST /v1/leases HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        trailer = b"Authorization: Bearer t0ken-for-tests\r\n\r\n"
        assert (await client.ask(lines + b"2\r\n{}\r\n0\r\n" + trailer)).status == 401


async def test_a_chunked_body_over_the_cap_is_413(server, api):
    async with connected(server) as client:
        client.send(post(CHUNKED))
        for _ in range(9):
            client.send(b"2000\r\n" + b" " * 0x2000 + b"\r\n")
        assert (await client.read()).status == 413
    assert api.fleet.leases.total_leases() == 0


async def test_a_chunked_body_of_single_bytes_is_bounded_on_the_wire(server, api):
    async with connected(server) as client:
        client.send(post(CHUNKED, raw=b"1;" + b"x" * 1000 + b"\r\n \r\n"))
        for _ in range(600):
            client.send(b"1;" + b"x" * 1000 + b"\r\n \r\n")
        assert (await client.read()).status == 400
        assert await client.is_closed()
    assert api.fleet.leases.total_leases() == 0


async def test_an_announced_body_over_the_cap_is_refused_unread(server):
    async with connected(server) as client:
        assert (await client.ask(post("Content-Length: 999999999"))).status == 413


async def test_an_unauthenticated_body_is_refused_unread(server):
    async with connected(server) as client:
        head = request("POST", "/v1/leases", "Content-Length: 999999999", token=None)
        assert (await client.ask(head)).status == 401
        chunked = request("POST", "/v1/leases", CHUNKED, "Expect: 100-continue", token=None)
    async with connected(server) as client:
        assert (await client.ask(chunked)).status == 401


async def test_the_connection_survives_a_refused_body_that_still_comes(server):
    async with connected(server) as client:
        client.send(request("POST", "/v1/leases", "Content-Length: 80000", token=None))
        assert (await client.read()).status == 401
        client.send(b" " * 80_000)
        assert (await client.ask(request())).status == 200


async def test_a_refused_body_without_end_is_cut_off(server):
    async with connected(server) as client:
        client.send(request("POST", "/v1/leases", "Content-Length: 999999999", token=None))
        assert (await client.read()).status == 401
        for _ in range(40):
            client.send(b" " * 32_768)
        assert await client.is_closed()
    assert await is_well(server)


async def test_a_short_body_is_408_and_leases_nothing(server, api):
    async with connected(server) as client:
        reply = await client.ask(post("Content-Length: 10", raw=b"{}"))
        assert (reply.status, reply.error) == (408, "request_timeout")
        assert await client.is_closed()
    assert api.fleet.leases.total_leases() == 0


async def test_a_body_longer_than_it_said_spoils_the_connection_only(server):
    async with connected(server) as client:
        client.send(post("Content-Length: 2", raw=b"{}garbage\r\n\r\n"))
        assert (await client.read()).status == 201
        assert (await client.read()).status == 400
        assert await client.is_closed()
    assert await is_well(server)


async def test_a_client_that_says_nothing_is_closed(server):
    async with connected(server) as client:
        assert await client.is_closed()


@pytest.mark.parametrize("piece", [b"X-Slow: y\r\n", b"x"], ids=["headers", "one header"])
async def test_slow_headers_are_408(server, piece):
    async with connected(server) as client:
        client.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: ")
        drip = asyncio.get_running_loop()

        def more() -> None:
            if not client.writer.transport.is_closing():
                client.send(piece)
                drip.call_later(0.05, more)

        more()
        assert (await client.read()).status == 408


async def test_empty_lines_do_not_keep_a_connection(server):
    async with connected(server) as client:
        assert (await client.ask(request())).status == 200
        client.send(b"\r\n")
        assert (await client.read()).status == 408
        assert await client.is_closed()


async def test_a_slow_body_is_408(server):
    async with connected(server) as client:
        client.send(post("Content-Length: 1000"))
        for _ in range(3):
            client.send(b" ")
            await asyncio.sleep(0.1)
        assert (await client.read()).status == 408
        assert await client.is_closed()


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\n" + b"a: b\r\n" * 4000 + b"\r\n",
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 60_000,
    ],
    ids=["one header", "many headers", "path", "unfinished"],
)
async def test_a_head_over_the_cap_is_431(server, head):
    async with connected(server) as client:
        reply = await client.ask(head)
        assert (reply.status, reply.error) == (431, "headers_too_large")
        assert await client.is_closed()


async def test_a_head_under_the_cap_is_served(server):
    async with connected(server) as client:
        assert (await client.ask(request("GET", "/healthz", "X: " + "x" * 15_000))).status == 200


async def test_97_megabytes_of_headers_are_cut_off_early(server):
    sent = 0
    async with connected(server) as client:
        client.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\n")
        try:
            while sent < 97 * 2**20:
                client.send(b"X: " + b"x" * 65_000 + b"\r\n")
                sent += 65_005
                await client.writer.drain()
        except ConnectionError:
            pass
    assert sent < 16 * 2**20
    assert await is_well(server)


async def test_pipelined_requests_are_answered_in_order(server):
    async with connected(server) as client:
        client.send(request() + post(body=b"{}") + request("GET", "/nope") + request())
        assert [(await client.read()).status for _ in range(4)] == [200, 201, 404, 200]


async def test_a_refusal_does_not_overtake_earlier_answers(server, api):
    async with connected(server) as client:
        client.send(post(body=b"{}") + post(body=b"{}") + b"garbage\r\n\r\n")
        assert [(await client.read()).status for _ in range(3)] == [201, 201, 400]
        assert await client.is_closed()
    assert api.fleet.leases.total_leases() == 2


async def test_a_broken_body_behind_good_requests_harms_only_itself(server, api):
    async with connected(server) as client:
        client.send(post(body=b"{}") + post(CHUNKED, raw=b"zz\r\n"))
        assert [(await client.read()).status for _ in range(2)] == [201, 400]
        assert await client.is_closed()
    assert api.fleet.leases.total_leases() == 1


async def test_endless_pipelining_is_bounded(server):
    async with connected(server) as client:
        client.send(request() * 500)
        statuses = []
        try:
            while True:
                statuses.append((await client.read()).status)
        except EOFError:
            pass
        assert set(statuses) <= {200, 400}
        assert statuses.count(400) == 1
    assert await is_well(server)


async def test_expect_continue_is_answered_before_the_body(server):
    async with connected(server) as client:
        client.send(post("Content-Length: 2", "Expect: 100-continue"))
        assert (await client.read()).status == 100
        assert (await client.ask(b"{}")).status == 201


@pytest.mark.parametrize("protocol", ["websocket", "h2c"])
async def test_an_upgrade_is_ignored_and_the_request_answered(server, protocol):
    async with connected(server) as client:
        data = request("GET", "/healthz", "Connection: Upgrade", f"Upgrade: {protocol}")
        reply = await client.ask(data + b"\x00\x01\x02")
        assert (reply.status, reply.headers["connection"]) == (200, "close")
        assert await client.is_closed()


async def test_an_absolute_target_is_served_by_its_path(server):
    async with connected(server) as client:
        assert (await client.ask(request("GET", "http://other.example/healthz"))).status == 200


async def test_http_1_0_is_answered_and_closed(server):
    async with connected(server) as client:
        assert (await client.ask(b"GET /healthz HTTP/1.0\r\n\r\n")).status == 200
        assert await client.is_closed()


async def test_head_has_the_headers_of_get_and_no_body(server):
    async with connected(server) as client:
        client.send(request("HEAD"))
        reply = await client.read(has_body=False)
        assert (reply.status, reply.headers["content-length"]) == (200, "15")
        assert (await client.ask(request())).body == b'{"status":"ok"}'


async def test_a_204_has_neither_body_nor_length(server):
    async with connected(server) as client:
        reply = await client.ask(request("DELETE", "/v1/leases/x"))
        assert reply.status == 204
        assert not {"content-length", "transfer-encoding"} & set(reply.headers)
        assert (await client.ask(request())).status == 200


async def test_a_half_closed_client_still_gets_its_answer_or_an_end(server):
    async with connected(server) as client:
        client.send(request())
        client.writer.write_eof()
        with contextlib.suppress(EOFError):
            assert (await client.read()).status == 200
    assert await is_well(server)


async def test_the_longest_idle_connection_makes_room_for_a_new_one(api):
    patient = msgspec.structs.replace(QUICK, idle_timeout=timedelta(minutes=5))
    clients: list[Client] = []
    async with serving(api.endpoint, patient) as server:
        try:
            for _ in range(patient.connections + 1):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.bound_port)
                clients.append(Client(reader, writer))
                assert (await clients[-1].ask(request())).status == 200
                await asyncio.sleep(0.005)  # a loop's time may move in whole milliseconds
            assert await clients[0].is_closed()
            for client in clients[1:]:
                assert (await client.ask(request())).status == 200
        finally:
            for client in clients:
                client.writer.transport.abort()
            await asyncio.sleep(0)


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: "])
async def test_connections_that_say_nothing_keep_nobody_out(api, said):
    patient = msgspec.structs.replace(QUICK, head_timeout=timedelta(minutes=5))
    silent: list[Client] = []
    async with serving(api.endpoint, patient) as server:
        try:
            for _ in range(patient.connections):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.bound_port)
                silent.append(Client(reader, writer))
                silent[-1].send(said)
            await asyncio.sleep(0.05)
            async with connected(server) as late:
                assert (await late.ask(request())).status == 200
        finally:
            for client in silent:
                client.writer.transport.abort()
            await asyncio.sleep(0)


async def test_a_refusal_ends_at_once_for_a_client_that_waits_for_the_end(api):
    patient = msgspec.structs.replace(QUICK, linger=timedelta(minutes=5))
    async with serving(api.endpoint, patient, grace=0.1) as server, connected(server) as client:
        assert (await client.ask(b"garbage\r\n\r\n")).status == 400
        assert await client.is_closed()


async def test_busy_connections_are_not_cut_for_new_ones(server):
    clients: list[Client] = []
    try:
        for _ in range(QUICK.connections):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.bound_port)
            clients.append(Client(reader, writer))
            clients[-1].send(post("Content-Length: 2"))
        await asyncio.sleep(0.05)
        async with connected(server) as late:
            late.send(request())
            assert await late.is_closed()
        clients[0].send(b"{}")
        assert (await clients[0].read()).status == 201
    finally:
        for client in clients:
            client.writer.transport.abort()
        await asyncio.sleep(0)


async def test_a_client_that_does_not_read_is_cut_off(api):
    api.fleet.add(*(a_leasable(f"q{n}", attributes={"x": "y" * 900}) for n in range(1000)))
    async with serving(api.endpoint) as server, connected(server) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.send(request("GET", "/v1/proxies") * 8)
        for _ in range(100):
            await asyncio.sleep(0.05)
            if not server._state.connections:
                break
        assert not server._state.connections


async def test_random_bytes_never_make_a_5xx(server):
    rng = random.Random(20)
    good = post(body=b'{"selector":{"region":"eu"},"ttlSeconds":30}')
    for _ in range(150):
        data = bytearray(good)
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        async with connected(server) as client:
            client.send(bytes(data[: rng.randrange(1, len(data) + 1)]))
            client.writer.write_eof()
            with contextlib.suppress(EOFError):
                assert (await client.read(has_body=False)).status < 500
    assert await is_well(server)


async def test_nothing_is_kept_of_connections_that_are_gone(api):
    limits = msgspec.structs.replace(QUICK, connections=64)
    async with serving(api.endpoint, limits) as server:
        for _ in range(30):
            async with connected(server) as client:
                client.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 1000)
        for _ in range(100):
            if not server._state.connections:
                break
            await asyncio.sleep(0.01)
        assert not server._state.connections
        assert not server._state.tasks
        gc.collect()
        alive = [o for o in gc.get_objects() if type(o).__name__ == "BoundedProtocol"]
        assert len(alive) == 0

import asyncio
import signal
import socket
from datetime import timedelta

import pytest

from proxy_operator.adapters.web.bind import Bind, BindError
from proxy_operator.adapters.web.exchange import Headers, Response, json_answer
from proxy_operator.adapters.web.limits import Limits
from proxy_operator.adapters.web.listener import Listener
from proxy_operator.adapters.web.server import HttpServer
from tests.unit.adapters.web.harness import LOOPBACK, connected, request, serving

GRACE = timedelta(seconds=5)


class Echo:
    """Answers every request with its body's length."""

    def refuse(self, method: str, path: str, headers: Headers) -> Response | None:
        return None

    def dispatch(
        self, method: str, path: str, query: str, headers: Headers, body: bytes
    ) -> Response:
        return json_answer(200, len(body))


def a_server(bind: Bind = LOOPBACK) -> HttpServer:
    return HttpServer(Listener("discovery", bind), Echo(), Limits(), GRACE)


async def test_a_request_under_way_is_finished_before_the_server_stops():
    async with serving(Echo(), Limits()) as server, connected(server) as client:
        client.send(request("POST", "/", "Content-Length: 5") + b"12")
        await asyncio.sleep(0.05)
        async with asyncio.TaskGroup() as group:
            stopping = group.create_task(server.stop(GRACE))
            await asyncio.sleep(0.05)
            assert not stopping.done()
            client.send(b"345")
            reply = await client.read()
            assert (reply.body, reply.headers["connection"]) == (b"5", "close")
        assert await client.is_closed()


async def test_idle_connections_are_closed_at_once_at_a_stop():
    async with serving(Echo(), Limits()) as server, connected(server) as client:
        assert (await client.ask(request())).status == 200
        async with asyncio.timeout(1):
            await server.stop(GRACE)
        assert await client.is_closed()


async def test_nothing_new_is_accepted_after_a_stop():
    async with serving(Echo(), Limits()) as server:
        port = server.bound_port
        await server.stop(GRACE)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)


async def test_the_grace_bounds_the_stop():
    async with serving(Echo(), Limits()) as server, connected(server) as client:
        client.send(request("POST", "/", "Content-Length: 5") + b"12")
        await asyncio.sleep(0.05)
        async with asyncio.timeout(2):
            await server.stop(timedelta(seconds=0.1))
        assert await client.is_closed()


async def test_a_cancelled_run_stops_gracefully_and_leaves_signals_alone():
    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    server = a_server()
    await server.start()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(server.run())
        async with connected(server) as client:
            client.send(request("POST", "/", "Content-Length: 2") + b"1")
            await asyncio.sleep(0.05)
            assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == before
            running.cancel()
            await asyncio.sleep(0.05)
            assert (await client.ask(b"2")).body == b"2"
    assert running.cancelled()


async def test_a_drained_server_can_be_started_again():
    server = a_server()
    await server.start()
    await server.drain(GRACE)
    await server.start()
    async with connected(server) as client:
        assert (await client.ask(request())).status == 200
    await server.drain(GRACE)


async def test_clients_that_come_before_the_start_are_served_after_it():
    listener = Listener("discovery", LOOPBACK)
    await listener.open()
    server = HttpServer(listener, Echo(), Limits(), GRACE)
    async with connected(server) as client:
        client.send(request())
        await server.start()
        assert (await client.read()).status == 200
        await server.stop(GRACE)


async def test_an_address_taken_but_never_served_is_given_back():
    listener = Listener("discovery", LOOPBACK)
    await listener.open()
    port = listener.bound.port
    listener.close()
    listener.close()
    with socket.create_server(("127.0.0.1", port)):
        pass


async def test_a_taken_port_is_one_clear_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BindError) as caught:
            await a_server(Bind("127.0.0.1", port)).start()
    assert str(caught.value) == (
        f"cannot listen on 127.0.0.1:{port} for discovery: another program uses the port"
    )


@pytest.mark.parametrize(
    ("host", "why"),
    [("192.0.2.77", "cannot assign"), ("no-such-host.invalid", "the host name is unknown")],
)
async def test_an_address_that_is_not_here_is_one_clear_sentence(host, why):
    with pytest.raises(BindError, match=why):
        await a_server(Bind(host, 0)).start()


@pytest.mark.parametrize("host", ["", "::", "0.0.0.0", "localhost"])
async def test_every_form_of_bind_is_reached_over_loopback(host):
    server = a_server(Bind(host, 0))
    await server.start()
    try:
        async with connected(server) as client:
            assert (await client.ask(request())).status == 200
    finally:
        await server.stop(GRACE)


async def test_an_ipv6_bind_is_served():
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    server = a_server(Bind("::1", 0))
    await server.start()
    try:
        reader, writer = await asyncio.open_connection("::1", server.bound_port)
        writer.write(request())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
    finally:
        await server.stop(GRACE)


async def test_answers_carry_the_date():
    async with serving(Echo(), Limits()) as server, connected(server) as client:
        assert (await client.ask(request())).headers["date"].endswith("gmt")


def test_the_port_is_not_known_before_the_start():
    with pytest.raises(RuntimeError, match="not started"):
        _ = a_server().bound_port

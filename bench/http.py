"""CPU per request of the discovery API, beside a bare ASGI function on stock uvicorn.

    .venv/bin/python -m bench.http [--quick]

Pairs of acquire and release over 16 keep-alive connections on loopback, with bearer auth, access
log and metrics on. Servers run in processes of their own on one core, the load on another; what
counts is the CPU time of the server's process, so that a noisy machine disturbs less.
"""

import json
import logging
import multiprocessing
import os
import selectors
import socket
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection

import uvicorn
import uvloop

from proxy_operator.adapters.metrics.families import new_registry
from proxy_operator.adapters.metrics.recorders import LeaseRecorder
from proxy_operator.adapters.web.asgi import Message, Receive, Send
from proxy_operator.adapters.web.auth import BearerGuard, StaticToken
from proxy_operator.adapters.web.bind import Bind
from proxy_operator.adapters.web.dispatch import discovery_endpoint
from proxy_operator.adapters.web.limits import Limits
from proxy_operator.adapters.web.listener import Listener
from proxy_operator.adapters.web.server import HttpServer
from proxy_operator.discovery.model import DiscoverySettings
from proxy_operator.discovery.service import DiscoveryService
from proxy_operator.domain.condition import Condition, ConditionStatus, ConditionType
from proxy_operator.domain.meta import ObjectMeta
from proxy_operator.domain.proxy import Endpoint, Mode, Phase, Proxy, ProxySpec, ProxyStatus
from proxy_operator.leasing.feed import CandidateFeed
from proxy_operator.leasing.store import LeaseStore
from proxy_operator.provisioning.credentials import SecretReader
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.store import Store

TOKEN = "s3cret-token-for-bench-0123456789"
CONNECTIONS = 16
SIZES = (10, 10_000)
BODY = b'{"selector":{"region":"eu"},"ttlSeconds":300,"target":"example.com"}'
GRANT = json.dumps(
    {"leaseID": "0" * 32, "proxy": {"url": "http://192.0.2.1:3128"}, "ttlSeconds": 300},
    separators=(",", ":"),
).encode()


def a_proxy(n: int) -> Proxy:
    healthy = Condition(
        type=ConditionType.HEALTHY,
        status=ConditionStatus.TRUE,
        reason="ProbeSucceeded",
        last_transition_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return Proxy(
        metadata=ObjectMeta(name=f"proxy-{n}", uid=f"uid-{n}", generation=1),
        spec=ProxySpec(
            mode=Mode.EXTERNAL,
            endpoint=Endpoint(host="192.0.2.1", port=3128),
            attributes={"region": "eu", "pool": "a"},
        ),
        status=ProxyStatus(phase=Phase.READY, latency_millis=20 + n % 50, conditions=(healthy,)),
    )


async def _serve_api(size: int, ready: Connection) -> None:
    logging.basicConfig(level=logging.INFO)
    clock = SystemClock()
    proxies = Store[Proxy]()
    leases = LeaseStore(clock)
    proxies.add_handler(CandidateFeed(leases).handle)
    for n in range(size):
        proxies.put(a_proxy(n))
    recorder = LeaseRecorder(new_registry())
    settings = DiscoverySettings()
    service = DiscoveryService(proxies, leases, SecretReader(Store(), Store()), recorder, settings)
    guard = BearerGuard(StaticToken(TOKEN.encode()))
    endpoint = discovery_endpoint(service, guard, lambda: True)
    bind = Bind("127.0.0.1", 0)
    server = HttpServer(Listener("discovery", bind), endpoint, Limits(), timedelta(seconds=1))
    await server.start()
    ready.send(server.bound_port)
    await server.run()


async def _bare(scope: Message, receive: Receive, send: Send) -> None:
    headers, body = [], b""
    status = 204
    if scope["method"] == "POST":
        json.loads((await receive())["body"])
        status, body = 201, GRANT
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(GRANT))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _serve_bare(_: int, ready: Connection) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    ready.send(taken.getsockname()[1])
    config = uvicorn.Config(
        _bare,
        http="httptools",
        loop="uvloop",
        log_level="warning",
        access_log=False,
        lifespan="off",
    )
    uvicorn.Server(config).run(sockets=[taken])


def _run_api(size: int, ready: Connection) -> None:
    uvloop.run(_serve_api(size, ready))


def cpu_seconds(pid: int) -> float:
    """User and system time of a process (proc(5), fields 14 and 15)."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Pair:
    """One connection that acquires and releases in turn."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.done = 0
        self.lease: bytes | None = None

    def ask(self) -> None:
        auth = f"Host: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
        if self.lease is None:
            head = b"POST /v1/leases HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n" % (auth, len(BODY))
            self.sock.sendall(head + BODY)
        else:
            self.sock.sendall(b"DELETE /v1/leases/%b HTTP/1.1\r\n%b\r\n" % (self.lease, auth))

    def take(self) -> None:
        data = self.sock.recv(65_536)
        if self.lease is None:
            while not data.endswith(b"}"):
                data += self.sock.recv(65_536)
            assert data.startswith(b"HTTP/1.1 201"), data
            at = data.index(b'"leaseID":"') + 11
            self.lease = data[at : data.index(b'"', at)]
        else:
            while not data.endswith(b"\r\n\r\n"):
                data += self.sock.recv(65_536)
            assert data.startswith(b"HTTP/1.1 204"), data
            self.lease = None
        self.done += 1


def load(port: int, seconds: float) -> int:
    """Keep all connections busy for so long; return how many requests were answered."""
    pairs = [Pair(port) for _ in range(CONNECTIONS)]
    with selectors.DefaultSelector() as selector:
        for pair in pairs:
            selector.register(pair.sock, selectors.EVENT_READ, pair)
            pair.ask()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for key, _ in selector.select(1):
                key.data.take()
                key.data.ask()
    for pair in pairs:
        pair.sock.close()
    return sum(pair.done for pair in pairs)


def pin(core: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})


def _child(run: Callable[[int, Connection], None], size: int, ready: Connection) -> None:
    pin(0)
    run(size, ready)


def main() -> None:
    quick = "--quick" in sys.argv
    seconds, rounds = (1.0, 3) if quick else (3.0, 5)
    context = multiprocessing.get_context("spawn")
    servers: dict[str, tuple[int, int]] = {}
    processes = []
    wanted: list[tuple[str, Callable[[int, Connection], None], int]] = [
        ("bare uvicorn", _serve_bare, 0),
        *((f"{size:,} proxies", _run_api, size) for size in SIZES),
    ]
    for name, run, size in wanted:
        ours, theirs = context.Pipe()
        process = context.Process(target=_child, args=(run, size, theirs), daemon=True)
        process.start()
        processes.append(process)
        servers[name] = (ours.recv(), process.pid or 0)
    pin(1)
    micros: dict[str, list[float]] = {name: [] for name in servers}
    for name, (port, _) in servers.items():
        assert load(port, 0.5), name
    for _ in range(rounds):
        for name, (port, pid) in servers.items():
            before = cpu_seconds(pid)
            answered = load(port, seconds)
            micros[name].append((cpu_seconds(pid) - before) * 1e6 / answered)
    for process in processes:
        process.terminate()
    base = statistics.median(micros["bare uvicorn"])
    print(f"{'':16}{'CPU µs/request':>16}{'range':>16}{'to bare uvicorn':>18}")
    for name, values in micros.items():
        middle = statistics.median(values)
        span = f"{min(values):.0f}-{max(values):.0f}"
        print(f"{name:16}{middle:16.0f}{span:>16}{middle / base:18.2f}")
    small, large = (statistics.median(micros[f"{size:,} proxies"]) for size in SIZES)
    print(f"{SIZES[-1]:,} proxies to {SIZES[0]}: {large / small:.2f}")


if __name__ == "__main__":
    main()

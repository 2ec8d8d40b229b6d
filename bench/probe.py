"""What a probe costs, and whether the engine keeps its rhythm on one core.

    python bench/probe.py            CPU per probe: prober against plain asyncio streams, both loops
    python bench/probe.py engine     a fleet under the engine: CPU, lag
    python bench/probe.py serve DIR  only the responder; writes DIR/ca.pem and prints its port

The responder is proxy and target in one and runs in a process of its own, so that the figures are
the client's alone. Compare figures of one run only; machines differ, and neighbours are noisy.
"""

import argparse
import asyncio
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

import trustme
import uvloop

from proxy_operator.adapters.probing.prober import ProxyProber
from proxy_operator.adapters.probing.tls import probe_tls_context
from proxy_operator.domain.event import EventKind
from proxy_operator.domain.meta import ObjectMeta
from proxy_operator.domain.proxy import Endpoint, HealthCheck, Mode, Proxy, ProxySpec, Scheme
from proxy_operator.domain.secret import Credentials
from proxy_operator.health.engine import HealthEngine, HealthSettings
from proxy_operator.health.ports import Ports, ProbeOutcome, ProbeRequest
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.store import Store

CONCURRENCY: Final = 16
TIMEOUT: Final = timedelta(seconds=10)
URLS: Final = {"plain": "http://localhost:18180/", "tls": "https://localhost:18543/"}
OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"

Probe = Callable[[], Awaitable[bool]]


async def serve(folder: Path) -> None:
    """Answer every request with 200, every CONNECT with a tunnel to itself."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"CONNECT "):
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                await writer.drain()
                await writer.start_tls(context)
                await reader.readuntil(b"\r\n\r\n")
            writer.write(OK)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def prober_client(port: int, context: ssl.SSLContext, mode: str) -> Probe:
    prober = ProxyProber(context, SystemClock())
    request = ProbeRequest(
        host="127.0.0.1",
        port=port,
        scheme=Scheme.HTTP,
        credentials=None,
        url=URLS[mode],
        expected_status=None,
        timeout=TIMEOUT,
    )

    async def probe() -> bool:
        return (await prober.probe(request)).error is None

    return probe


def streams_client(port: int, context: ssl.SSLContext, mode: str) -> Probe:
    async def probe() -> bool:
        async with asyncio.timeout(TIMEOUT.total_seconds()):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                if mode == "tls":
                    writer.write(b"CONNECT localhost:18543 HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    await reader.readuntil(b"\r\n\r\n")
                    await writer.start_tls(context, server_hostname="localhost")
                writer.write(b"GET http://localhost:18180/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            finally:
                writer.close()

    return probe


CLIENTS: Final = {"prober": prober_client, "streams": streams_client}


async def measure(probe: Probe, count: int) -> dict[str, float]:
    """Send probes, 16 in flight, and return the CPU of this process for each."""
    left = count

    async def worker() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            if not await probe():
                raise SystemExit("a probe failed: the figures would be worthless")

    for _ in range(50):
        await probe()
    cpu, wall = time.process_time(), time.monotonic()
    async with asyncio.TaskGroup() as group:
        for _ in range(CONCURRENCY):
            group.create_task(worker())
    return {
        "cpu_us": (time.process_time() - cpu) / count * 1e6,
        "per_s": count / (time.monotonic() - wall),
    }


class NoCredentials:
    def credentials_for(self, _proxy: Proxy) -> Credentials | None:
        return None


class NoEvents:
    def record(self, _proxy: Proxy, _event: EventKind, _message: str) -> None:
        pass


class Lags:
    """Keeps how late probes were."""

    def __init__(self) -> None:
        self.lags: list[float] = []
        self.failures = 0

    def probed(self, _key: ObjectKey, outcome: ProbeOutcome, lag: timedelta) -> None:
        self.lags.append(lag.total_seconds())
        self.failures += outcome.error is not None

    def forgot(self, _key: ObjectKey) -> None:
        pass


async def run_engine(port: int, ca: Path, options: argparse.Namespace) -> dict[str, float]:
    """Let the engine settle for an interval, then watch it for two."""
    store: Store[Proxy] = Store()
    lags = Lags()
    check = HealthCheck(interval=f"{options.interval}s", url=URLS[options.mode])
    spec = ProxySpec(
        mode=Mode.EXTERNAL, endpoint=Endpoint(host="127.0.0.1", port=port), health_check=check
    )
    for n in range(options.proxies):
        store.put(Proxy(metadata=ObjectMeta(name=f"p{n}", uid=f"uid-{n}"), spec=spec))
    clock = SystemClock()
    prober = ProxyProber(probe_tls_context(ca), clock)
    ports = Ports(prober, NoCredentials(), lags, NoEvents())
    engine = HealthEngine(store, ports, clock, HealthSettings())
    engine.subscribe(lambda _: True)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(engine.run())
        await asyncio.sleep(options.interval * 1.5)
        lags.lags.clear()
        cpu, wall = time.process_time(), time.monotonic()
        await asyncio.sleep(options.interval * 2)
        cpu, wall = time.process_time() - cpu, time.monotonic() - wall
        task.cancel()
    prober.close()
    cuts = statistics.quantiles(lags.lags, n=100)
    return {
        "probes": len(lags.lags),
        "failures": lags.failures,
        "cpu_percent": cpu / wall * 100,
        "cpu_us_per_probe": cpu / len(lags.lags) * 1e6,
        "lag_p50_ms": cuts[49] * 1000,
        "lag_p99_ms": cuts[98] * 1000,
        "lag_max_ms": max(lags.lags) * 1000,
    }


def client(options: argparse.Namespace) -> None:
    """Run one client in this process and print its figures."""
    context = probe_tls_context(options.folder / "ca.pem")

    async def run() -> dict[str, float]:
        return await measure(
            CLIENTS[options.client](options.port, context, options.mode), options.count
        )

    factory = uvloop.new_event_loop if options.loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        print(json.dumps(runner.run(run())))


def pinned(core: int) -> list[str]:
    """Run Python on one core, when there are two to tell apart."""
    cores = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(cores[core % len(cores)]), sys.executable, __file__]


def start_responder(folder: Path) -> tuple[subprocess.Popen[str], int]:
    responder = subprocess.Popen(
        [*pinned(1), "serve", str(folder)], stdout=subprocess.PIPE, text=True
    )
    if responder.stdout is None:
        raise SystemExit("the responder did not start")
    return responder, int(responder.stdout.readline())


def compare(options: argparse.Namespace, folder: Path, port: int) -> None:
    """Run every client in turn, several rounds, and print medians and ranges."""
    figures: dict[tuple[str, str, str], list[float]] = {}
    for _ in range(options.rounds):
        for mode in URLS:
            for name in CLIENTS:
                for loop in ("asyncio", "uvloop"):
                    arguments = ["client", str(folder), str(port), name, loop, mode]
                    done = subprocess.run(
                        [*pinned(0), *arguments, "--count", str(options.count)],
                        check=True,
                        capture_output=True,
                        text=True,
                    )
                    cpu = json.loads(done.stdout)["cpu_us"]
                    figures.setdefault((mode, name, loop), []).append(cpu)
    print("mode   client   loop     CPU us per probe: median (range)")
    for (mode, name, loop), values in figures.items():
        spread = f"({min(values):.0f} to {max(values):.0f})"
        print(f"{mode:6} {name:8} {loop:8} {statistics.median(values):6.0f} {spread}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=2000)
    commands = parser.add_subparsers(dest="command")
    serving = commands.add_parser("serve")
    serving.add_argument("folder", type=Path)
    one = commands.add_parser("client")
    one.add_argument("folder", type=Path)
    one.add_argument("port", type=int)
    one.add_argument("client", choices=CLIENTS)
    one.add_argument("loop", choices=["asyncio", "uvloop"])
    one.add_argument("mode", choices=URLS)
    one.add_argument("--count", type=int, default=2000)
    fleet = commands.add_parser("engine")
    fleet.add_argument("--proxies", type=int, default=5000)
    fleet.add_argument("--interval", type=int, default=30)
    fleet.add_argument("--mode", choices=URLS, default="plain")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    if options.command == "serve":
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(options.folder))
        return
    if options.command == "client":
        client(options)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        responder, port = start_responder(folder)
        try:
            if options.command == "engine":
                os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                    found = runner.run(run_engine(port, folder / "ca.pem", options))
                print(json.dumps({key: round(value, 2) for key, value in found.items()}))
            else:
                compare(options, folder, port)
        finally:
            responder.terminate()
            responder.wait()


if __name__ == "__main__":
    main()

"""A fleet of External proxies under one operator process, from apply to a settled restart.

    .venv/bin/python -m bench.fleet [N] [--steady SECONDS] [--rounds N]

All endpoints are one fast responder on loopback, in a process of its own. The operator has one
core, the load another; CPU and memory are those of the operator's process. Compare figures of one
machine only.
"""

import argparse
import asyncio
import http.client
import json
import os
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, cast

import uvloop

from proxy_operator.app.client import open_home
from proxy_operator.domain.condition import ConditionType, is_true
from proxy_operator.domain.proxy import Proxy

OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"
ANSWER: Final = (200, 201, 204)
PAIRS_PER_SECOND: Final = 20
LAG: Final = 'proxy_operator_probe_lag_seconds_bucket{le="'
MANIFEST: Final = """\
apiVersion: crawl.example.com/v1alpha1
kind: Proxy
metadata:
  name: proxy-{n}
spec:
  mode: External
  endpoint: {{host: 127.0.0.1, port: {port}}}
  attributes: {{region: {region}, asn: "{asn}"}}
  healthCheck: {{url: "http://target.test/", interval: 30s}}
---
"""


class Answer(asyncio.Protocol):
    """Answers every GET with 200 and hangs up."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.head = b""

    def data_received(self, data: bytes) -> None:
        self.head += data
        if self.head.endswith(b"\r\n\r\n"):
            transport = cast("asyncio.Transport", self.transport)
            transport.write(OK)
            transport.close()


async def respond() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answer, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def responder() -> Iterator[int]:
    """Run the endpoint of all proxies, on the load's core, and lend its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.fleet", "respond"],
        stdout=subprocess.PIPE,
    )
    pin(process, 1)
    try:
        yield int(process.stdout.readline()) if process.stdout else 0
    finally:
        process.terminate()
        process.wait()


class Usage(NamedTuple):
    """What a process has taken so far."""

    cpu: float
    """Seconds of user and system time."""
    rss: float
    """Megabytes now."""
    peak: float
    """Megabytes at most."""


def usage(pid: int) -> Usage:
    """Read proc(5): fields 14 and 15 of stat, two lines of status."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    sizes = {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}
    rss, peak = (int(sizes[name][0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return Usage(ticks / os.sysconf("SC_CLK_TCK"), rss, peak)


def pin(process: subprocess.Popen[bytes], core: int) -> None:
    """Bind a child to a core, when there are two to tell apart."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(process.pid, {cores[core % len(cores)]})


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


class Operator:
    """The operator's process on a data directory."""

    def __init__(self, command: Sequence[str], data: Path) -> None:
        self.discovery, self.metrics, self.health = free_ports(3)
        binds = {"discovery": self.discovery, "metrics": self.metrics, "health-probe": self.health}
        arguments = [f"--{name}-bind=127.0.0.1:{port}" for name, port in binds.items()]
        self.started = time.monotonic()
        with (data.parent / "operator.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "run", "--standalone", "--data-dir", str(data), *arguments],
                stdout=log,
                stderr=log,
            )
        pin(self.process, 0)

    def wait_until_ready(self) -> float:
        """Return how many seconds the start took."""
        while True:
            try:
                if self.get(self.health, "/readyz")[0] == 200:
                    return time.monotonic() - self.started
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit("the operator did not start") from None
            time.sleep(0.01)

    def get(self, port: int, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def usage(self) -> Usage:
        return usage(self.process.pid)

    def lags(self) -> dict[float, float]:
        """Return how many probes started at most so many seconds late."""
        lines = self.get(self.metrics, "/metrics")[1].decode().splitlines()
        found = (line[len(LAG) :].partition('"} ') for line in lines if line.startswith(LAG))
        return {float(bound): float(count) for bound, _, count in found}

    def stop(self) -> float:
        """Return how many seconds the stop took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        return time.monotonic() - began


class Progress(NamedTuple):
    """How far the fleet has come."""

    version: int
    observed: int
    healthy: int


def progress(data: Path) -> Progress:
    """Read the store as a command would."""

    async def look() -> Progress:
        async with open_home(data) as home:
            listing = await home.client.list(Proxy)
        return Progress(
            int(listing.resource_version),
            sum(p.status.observed_generation == p.metadata.generation for p in listing.items),
            sum(is_true(p.status.conditions, ConditionType.HEALTHY) for p in listing.items),
        )

    return asyncio.run(look())


def quantile(lags: dict[float, float], share: float) -> float:
    """Return the upper bound of the bucket that holds this quantile."""
    total = max(lags.values())
    return min(bound for bound, count in lags.items() if count >= share * total)


def lease_and_release(port: int, until: float) -> list[float]:
    """Lease and release at a gentle rate; return the milliseconds of each pair."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    body = json.dumps({"selector": {"region": "eu"}, "target": "example.com"})
    took = []
    while (began := time.monotonic()) < until:
        connection.request("POST", "/v1/leases", body)
        lease = json.loads(connection.getresponse().read())["leaseID"]
        connection.request("DELETE", f"/v1/leases/{lease}")
        connection.getresponse().read()
        took.append((time.monotonic() - began) * 1000)
        time.sleep(max(0.0, began + 1 / PAIRS_PER_SECOND - time.monotonic()))
    connection.close()
    return took


class Run:
    """One fleet in a directory of its own; `figures` is what was measured, in order."""

    def __init__(self, folder: Path, options: argparse.Namespace, port: int) -> None:
        self.data = folder / "data"
        self.manifests = folder / "fleet.yaml"
        self.size: int = options.size
        self.steady: float = options.steady
        self.command = shlex.split(options.operator)
        self.figures: dict[str, float] = {}
        self.manifests.write_text(
            "".join(
                MANIFEST.format(n=n, port=port, region=("eu", "us", "ap", "sa")[n % 4], asn=n % 5)
                for n in range(self.size)
            )
        )

    def run(self) -> dict[str, float]:
        operator = Operator(self.command, self.data)
        try:
            operator.wait_until_ready()
            self.bring_up(operator)
            self.watch_steady(operator)
            self.figures["stop, s"] = operator.stop()
            operator = self.restart()
        finally:
            operator.stop()
        return self.figures

    def bring_up(self, operator: Operator) -> None:
        began, before = time.monotonic(), operator.usage()
        self.figures["RSS, empty, MB"] = before.rss
        apply = subprocess.Popen(
            [*self.command, "apply", "--data-dir", str(self.data), "-f", str(self.manifests)],
            stdout=subprocess.DEVNULL,
        )
        pin(apply, 1)
        _, status, used = os.wait4(apply.pid, 0)
        if status:
            raise SystemExit("apply failed")
        self.figures["applied, s"] = time.monotonic() - began
        self.figures["apply command, CPU s"] = used.ru_utime + used.ru_stime
        milestones = {"reconciled, s": "observed", "all healthy, s": "healthy"}
        while milestones:
            seen = progress(self.data)
            for figure, member in [*milestones.items()]:
                if getattr(seen, member) == self.size:
                    self.figures[figure] = time.monotonic() - began
                    del milestones[figure]
            time.sleep(0.2)
        after = operator.usage()
        self.figures["operator until healthy, CPU s"] = after.cpu - before.cpu
        self.figures["writes per proxy"] = seen.version / self.size
        self.figures["RSS, healthy, MB"] = after.rss
        self.figures["RSS, peak, MB"] = after.peak

    def watch_steady(self, operator: Operator) -> None:
        time.sleep(5)
        took: list[float] = []
        # The page first: the memory it is rendered in is no drift.
        lags, first, version = operator.lags(), operator.usage(), progress(self.data).version
        began = time.monotonic()
        load = threading.Thread(
            target=lambda: took.extend(lease_and_release(operator.discovery, began + self.steady))
        )
        load.start()
        load.join()
        wall, last = time.monotonic() - began, operator.usage()
        self.figures["steady, CPU %"] = (last.cpu - first.cpu) / wall * 100
        late = {bound: count - lags[bound] for bound, count in operator.lags().items()}
        self.figures["steady, probes/s"] = late[float("inf")] / wall
        self.figures["steady, probe lag p99 at most, ms"] = quantile(late, 0.99) * 1000
        self.figures["steady, lease + release p50, ms"] = statistics.median(took)
        self.figures["steady, lease + release p99, ms"] = statistics.quantiles(took, n=100)[98]
        self.figures["steady, writes"] = progress(self.data).version - version
        self.figures["steady, RSS drift, MB"] = last.rss - first.rss
        before = operator.usage()
        scrapes = [self.scrape(operator) for _ in range(5)]
        self.figures["scrape of /metrics, ms"] = statistics.median(scrapes)
        self.figures["scrape, CPU ms"] = (operator.usage().cpu - before.cpu) * 1000 / len(scrapes)

    def scrape(self, operator: Operator) -> float:
        began = time.monotonic()
        operator.get(operator.metrics, "/metrics")
        return (time.monotonic() - began) * 1000

    def restart(self) -> Operator:
        version = progress(self.data).version
        operator = Operator(self.command, self.data)
        self.figures["restart until ready, s"] = operator.wait_until_ready()
        while operator.get(operator.discovery, "/v1/proxies?limit=1&healthy=true")[0] != 200:
            time.sleep(0.01)
        time.sleep(35)
        self.figures["restart, writes"] = progress(self.data).version - version
        after = operator.usage()
        self.figures["restart, CPU s in 35 s"] = after.cpu
        self.figures["restart, RSS, MB"] = after.rss
        return operator


def show(size: int, rounds: Iterable[dict[str, float]]) -> None:
    taken = [*rounds]
    print(f"{f'{size:,} External proxies':38}{'median':>10}{'range':>20}")
    for name in taken[0]:
        values = [figures[name] for figures in taken]
        span = f"{min(values):.1f} to {max(values):.1f}" if len(values) > 1 else ""
        print(f"{name:38}{statistics.median(values):10.1f}{span:>20}")


def parse_arguments() -> argparse.Namespace:
    program = Path(sys.executable).with_name("proxy-operator")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("size", nargs="?", default="5000", help="proxies, or `respond`")
    parser.add_argument("--steady", type=float, default=60, help="seconds to watch")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--operator", default=str(program), help="command to measure")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    if options.size == "respond":
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(respond())
        return
    options.size = int(options.size)
    with responder() as port:
        taken = []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                taken.append(Run(Path(folder), options, port).run())
        show(options.size, taken)


if __name__ == "__main__":
    main()

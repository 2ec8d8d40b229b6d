"""An operator on a real kube-apiserver, alone or in turn with another one that writes the same.

    .venv/bin/python -m bench.cluster SCENARIO [SIZE] [--rounds N] [--anchor COMMAND]

Scenarios: `external`, `managed` and `pretended` create Proxies while the operator runs; `start`
starts it on Proxies that it has settled before. In commands, {kubeconfig} and {size} are filled in.

Operators take turns on one API server, which is emptied in between. CPU and memory are those of
the operator's process; server, bench and operator share all cores. Compare figures of one run.
`managed` makes Pods; there are no nodes, so the bench itself makes them run. `pretended` is the
same with instances in memory, as an anchor is expected to do in both. It may write whole objects
and not know all fields, so the rules between fields are off there.
"""

import argparse
import asyncio
import collections
import os
import re
import shlex
import signal
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.cluster.state import state_directory

from bench.cluster_world import BASE, NAMESPACE, Nodes, Seen, World, started
from bench.fleet import Usage, free_ports, usage

IDLE_SECONDS: Final = 1.0
IDLE_SHARE: Final = 0.03
"""Of a core: an operator that used less for so long has nothing left to do."""
SYNCED: Final = re.compile(rb"caches have synced|ANCHOR synced")
PATIENCE: Final = 300
POD_STARTS_AFTER: Final = 0.5
PROXY_WRITES: Final = "writes to Proxies"

Figures = dict[str, float]


class Operator:
    """One process of an operator, from its start to its stop."""

    def __init__(self, command: list[str], world: World, log: Path) -> None:
        self._command = command
        self._kubeconfig = world.kubeconfig
        self._log = log
        self._synced = asyncio.Event()
        self.synced_after = 0.0
        self.busy_until: float | None = None

    async def start(self) -> None:
        self.started = time.monotonic()
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            env=environment(self._kubeconfig, self._log.with_name("bytecode")),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        self._reading = asyncio.create_task(self._read())
        self._sampling = asyncio.create_task(self._sample())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        with self._log.open("ab") as log:
            async for line in self._process.stdout:
                if not self._synced.is_set() and SYNCED.search(line):
                    self.synced_after = time.monotonic() - self.started
                    self._synced.set()
                log.write(line)

    async def _sample(self) -> None:
        """Note the last moment at which it worked."""
        history: collections.deque[tuple[float, float]] = collections.deque()
        while self._process.returncode is None:
            now, cpu = time.monotonic(), self.usage().cpu
            history.append((now, cpu))
            while now - history[1 if len(history) > 1 else 0][0] > IDLE_SECONDS:
                history.popleft()
            first, before = history[0]
            is_idle = now - first >= IDLE_SECONDS and cpu - before < IDLE_SHARE * (now - first)
            if not is_idle:
                self.busy_until = None
            elif self.busy_until is None:
                self.busy_until = first
            await asyncio.sleep(0.05)

    def usage(self) -> Usage:
        return usage(self._process.pid)

    async def wait_until_synced(self) -> None:
        async with asyncio.timeout(60):
            await self._synced.wait()

    async def wait_until_idle(self) -> float:
        """Return the moment of its last work, once that is long enough ago."""
        asked = time.monotonic()
        async with asyncio.timeout(PATIENCE):
            while self.busy_until is None or time.monotonic() - asked < IDLE_SECONDS:
                if self._process.returncode is not None:
                    raise SystemExit(f"the operator ended: {self._log.read_text()[-2000:]}")
                await asyncio.sleep(0.05)
        return self.busy_until

    async def stop(self) -> None:
        self._sampling.cancel()
        self._process.send_signal(signal.SIGTERM)
        await self._process.wait()
        await self._reading


class Bench:
    """Measures one operator after the other on one API server."""

    def __init__(self, world: World, scenario: str, size: int) -> None:
        self._world = world
        self._scenario = scenario
        self._size = size

    async def turn(self, command: str) -> Figures:
        """Measure an operator once, on an API server without Proxies."""
        try:
            if self._scenario == "start":
                return await self._settled_start(command)
            return await self._wave(command)
        finally:
            await self._world.wipe()
            await asyncio.sleep(2)

    async def _wave(self, command: str) -> Figures:
        world, spec_of = self._world, external if self._scenario == "external" else managed
        async with self._running(command) as operator, self._nodes():
            await operator.wait_until_idle()
            before, servers = operator.usage(), world.cpu_of_servers(cpu_of)
            world.forget_requests()
            began = time.monotonic()
            async with self._watching(self._size) as done:
                await world.create(self._size, spec_of)
                created = time.monotonic()
                ended = await done
            settled = await operator.wait_until_idle()
            after = operator.usage()
            return {
                "created, s": created - began,
                "all done, s": ended - began,
                "idle again, s": settled - began,
                "operator, CPU s": after.cpu - before.cpu,
                "RSS before, MB": before.rss,
                "RSS at most, MB": after.peak,
                "API server and etcd, CPU s": world.cpu_of_servers(cpu_of) - servers,
                **await self._writes(),
            }

    async def _settled_start(self, command: str) -> Figures:
        world = self._world
        async with self._running(command) as operator:
            async with self._watching(1) as done:
                await world.create(1, external)
                await done
            await operator.wait_until_idle()
        await world.clone(self._size)
        await asyncio.sleep(3)
        world.forget_requests()
        async with self._running(command) as operator:
            settled = await operator.wait_until_idle()
            after = operator.usage()
            return {
                "synced, s": operator.synced_after,
                "idle, s": settled - operator.started,
                "operator, CPU s": after.cpu,
                "RSS at most, MB": after.peak,
                "RSS then, MB": after.rss,
                **await self._writes(),
            }

    async def _writes(self) -> Figures:
        """Count; the log of an answer may come a moment after it."""
        await asyncio.sleep(0.5)
        counts = self._world.requests()
        total = sum(n for words, n in counts.items() if " proxies" in words)
        return {PROXY_WRITES: total, **{f"  {words}": counts[words] for words in sorted(counts)}}

    @asynccontextmanager
    async def _running(self, command: str) -> AsyncIterator[Operator]:
        world = self._world
        ready = command.format(kubeconfig=world.kubeconfig, size=self._size)
        operator = Operator(shlex.split(ready), world, world.plane.state / "operator.log")
        await operator.start()
        try:
            await operator.wait_until_synced()
            yield operator
        finally:
            await operator.stop()

    @asynccontextmanager
    async def _nodes(self) -> AsyncIterator[None]:
        if self._scenario != "managed":
            yield
            return
        stands = asyncio.Event()
        nodes = asyncio.create_task(Nodes(self._world, POD_STARTS_AFTER).run(stands))
        await stands.wait()
        try:
            yield
        finally:
            nodes.cancel()

    @asynccontextmanager
    async def _watching(self, size: int) -> AsyncIterator["asyncio.Task[float]"]:
        """Lend the moment at which so many Proxies are done, with a limit."""
        stands = asyncio.Event()
        version = await self._world.version(f"{BASE}/proxies")
        task = asyncio.create_task(self._count_done(size, version, stands))
        try:
            await stands.wait()
            yield task
        finally:
            task.cancel()

    async def _count_done(self, size: int, version: str, stands: asyncio.Event) -> float:
        done: set[str] = set()
        path = f"{BASE}/namespaces/{NAMESPACE}/proxies"
        async with asyncio.timeout(PATIENCE):
            async for kind, proxy in self._world.watch(path, version, stands):
                if kind != "DELETED" and self._is_done(proxy):
                    done.add(proxy.metadata.name)
                    if len(done) == size:
                        return time.monotonic()
        raise SystemExit("the watch ended")

    def _is_done(self, proxy: Seen) -> bool:
        return proxy.status.phase != "" if self._scenario == "external" else proxy.is_provisioned


def environment(kubeconfig: Path, bytecode: Path) -> dict[str, str]:
    """Return what operators find; Python code is compiled once, as an installed one is."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**env, "KUBECONFIG": str(kubeconfig), "PYTHONPYCACHEPREFIX": str(bytecode)}


def cpu_of(pid: int) -> float:
    return usage(pid).cpu


def external(n: int) -> dict[str, Any]:
    host = f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}"
    return {"mode": "External", "endpoint": {"host": host, "port": 3128}}


def managed(_: int) -> dict[str, Any]:
    return {"mode": "Managed", "provider": "kubernetes"}


def show(taken: dict[str, list[Figures]]) -> None:
    """Print medians and ranges of all operators, and the others' ratio to the last."""
    names = dict.fromkeys(name for rounds in taken.values() for one in rounds for name in one)
    print(f"{'':34}" + "".join(f"{program:>30}" for program in taken) + f"{'ratio':>10}")
    for name in names:
        medians, cells = [], ""
        for rounds in taken.values():
            values = [figures.get(name, 0.0) for figures in rounds]
            medians.append(statistics.median(values))
            span = f"({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
            cells += f"{medians[-1]:10.2f}{span:>20}"
        ratio = f"{medians[0] / medians[-1]:10.2f}" if len(medians) > 1 and medians[-1] else ""
        print(f"{name:34}{cells}{ratio}")


async def measure(options: argparse.Namespace) -> None:
    commands = {"ours": options.operator or own_command(options.scenario)}
    if options.anchor:
        commands["anchor"] = options.anchor
    taken: dict[str, list[Figures]] = {program: [] for program in commands}
    with state_directory() as state:
        async with started(state, with_rules=options.scenario in {"external", "start"}) as world:
            await asyncio.sleep(3)
            bench = Bench(world, options.scenario, options.size)
            for _ in range(options.rounds):
                for program, command in commands.items():
                    taken[program].append(await bench.turn(command))
                    if options.verbose:
                        print(program, taken[program][-1], flush=True)
    load = f"load {os.getloadavg()[0]:.1f}"
    print(f"{options.scenario}, {options.size:,} Proxies, rounds: {options.rounds}, {load}")
    show(taken)


def own_command(scenario: str) -> str:
    program: object = Path(sys.executable).with_name("proxy-operator")
    if scenario == "pretended":
        program = f"{sys.executable} -m bench.pretending"
    binds = zip(("discovery", "metrics", "health-probe"), free_ports(3), strict=True)
    flags = " ".join(f"--{name}-bind=127.0.0.1:{port}" for name, port in binds)
    return f"{program} run --kubeconfig {{kubeconfig}} {flags}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("scenario", choices=["external", "managed", "pretended", "start"])
    parser.add_argument("size", type=int, nargs="?", default=1000, help="Proxies")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--operator", help="command to measure")
    parser.add_argument("--anchor", help="command to measure in turn with it")
    parser.add_argument("--verbose", action="store_true", help="print every turn as it ends")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()

"""An operator on a real kube-apiserver, alone or in turn with another one that writes the same.

    .venv/bin/python -m bench.cluster SCENARIO [SIZE] [--rounds N] [--anchor COMMAND]

Scenarios: `external`, `probed`, `managed` and `pretended` create Proxies while the operator runs;
`start` starts it on Proxies that it has settled before. In commands, {kubeconfig} and {size} are
filled in.

Operators take turns on one API server, which is emptied in between. CPU and memory are those of
the operator's process; server, bench and operator share all cores. Compare figures of one run.
`probed` is `external` with endpoints that answer and probes of them, until all are healthy; an
anchor does not probe. `managed` makes Pods; there are no nodes, so the bench itself makes them
run. `pretended` is the same with instances in memory, as an anchor is expected to do in both. It
may write whole objects and not know all fields, so the rules between fields are off there.
"""

import argparse
import asyncio
import os
import shlex
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.cluster.state import state_directory

from bench.cluster_operator import PATIENCE, Operator
from bench.cluster_world import BASE, NAMESPACE, Nodes, Seen, World, started
from bench.fleet import responder, usage

SCENARIOS: Final = ("external", "probed", "managed", "pretended", "start")
POD_STARTS_AFTER: Final = 0.5
PROXY_WRITES: Final = "writes to Proxies"

Figures = dict[str, float]
SpecOf = Callable[[int], dict[str, Any]]


class Bench:
    """Measures one operator after the other on one API server."""

    def __init__(self, world: World, scenario: str, size: int, spec_of: SpecOf) -> None:
        self._world = world
        self._scenario = scenario
        self._size = size
        self._spec_of = spec_of

    async def try_out(self, command: str) -> None:
        """Start an operator and stop it."""
        async with self._running(command) as operator:
            await operator.wait_until_idle()

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
        world = self._world
        async with self._running(command) as operator, self._nodes():
            await operator.wait_until_idle()
            before, servers = operator.usage(), world.cpu_of_servers(cpu_of)
            world.forget_requests()
            began = time.monotonic()
            async with self._watching(self._size) as done:
                await world.create(self._size, self._spec_of)
                created = time.monotonic()
                ended = await done
            # Probes never end.
            settled = ended if self._scenario == "probed" else await operator.wait_until_idle()
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
                await world.create(1, self._spec_of)
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
        match self._scenario:
            case "probed":
                return proxy.has("Healthy")
            case "managed" | "pretended":
                return proxy.has("Provisioned")
            case _:
                return proxy.status.phase != ""


def cpu_of(pid: int) -> float:
    return usage(pid).cpu


def external(n: int) -> dict[str, Any]:
    host = f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}"
    return {"mode": "External", "endpoint": {"host": host, "port": 3128}}


def on_loopback(port: int) -> SpecOf:
    return lambda _: {"mode": "External", "endpoint": {"host": "127.0.0.1", "port": port}}


def managed(_: int) -> dict[str, Any]:
    return {"mode": "Managed", "provider": "kubernetes"}


def show(taken: dict[str, list[Figures]]) -> None:
    """Print medians and ranges of each operator, and the ratio of the medians."""
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


async def measure(options: argparse.Namespace, spec_of: SpecOf) -> None:
    commands = {"ours": options.operator or own_command(options.scenario)}
    if options.anchor:
        commands["anchor"] = options.anchor
    taken: dict[str, list[Figures]] = {program: [] for program in commands}
    with state_directory() as state:
        async with started(
            state, with_rules=options.scenario not in {"managed", "pretended"}
        ) as world:
            await asyncio.sleep(3)
            bench = Bench(world, options.scenario, options.size, spec_of)
            for command in commands.values():
                # Python compiles now, and a first start finds nothing in the machine's caches.
                await bench.try_out(command)
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
    binds = ("discovery", "metrics", "health-probe")
    flags = " ".join(f"--{name}-bind=127.0.0.1:0" for name in binds)
    if scenario == "probed":
        flags += " --health-url=http://target.test/"
    return f"{program} run --kubeconfig {{kubeconfig}} {flags}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("size", type=int, nargs="?", default=1000, help="Proxies")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--operator", help="command to measure")
    parser.add_argument("--anchor", help="command to measure in turn with it")
    parser.add_argument("--verbose", action="store_true", help="print every turn as it ends")
    options = parser.parse_args()
    if options.scenario == "probed":
        with responder() as port:
            asyncio.run(measure(options, on_loopback(port)))
    else:
        is_managed = options.scenario in {"managed", "pretended"}
        asyncio.run(measure(options, managed if is_managed else external))


if __name__ == "__main__":
    main()

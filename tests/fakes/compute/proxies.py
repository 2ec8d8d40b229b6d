"""Running instances as real forward proxies: one process each, on the address that is its natIP.

The cloud's addresses must be loopback ones (`Conduct.ip_prefix`, such as "127.77"), which need no
set-up on Linux. A proxy listens where its instance says in a label or its user data, if it does.
"""

import asyncio
import contextlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.fakes.compute.machine import Machine
from tests.fakes.compute.world import World

ROOT: Final = Path(__file__).resolve().parents[3]
LOOK_SECONDS: Final = 0.2
PREFIX: Final = "127.77"
PORT_LABEL: Final = "proxy-operator-port"
PROXY_MODULE: Final = "tests.fakes.compute.proxy_process"


@dataclass(frozen=True)
class Listener:
    """Where the proxy of an instance listens. Another address is another listener."""

    instance_id: str
    host: str
    port: int


class Proxies:
    """Starts and ends processes so that they are what the world says."""

    def __init__(self, world: World, port: int) -> None:
        """`port` is for instances that name none."""
        self._world = world
        self._port = port
        self._processes: dict[Listener, asyncio.subprocess.Process] = {}

    async def run(self) -> None:
        """Follow the world until cancelled, then end every proxy."""
        try:
            while True:
                await self._follow()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            for listener in list(self._processes):
                await self._end(listener)

    async def _follow(self) -> None:
        wanted = {
            Listener(one.id, one.nat_ip, port_of(one, self._port))
            for one in self._world.machines()
            if one.status == "RUNNING" and one.nat_ip is not None
        }
        for listener in self._processes.keys() - wanted:
            await self._end(listener)
        for listener in wanted - self._processes.keys():
            await self._start(listener)

    async def _start(self, listener: Listener) -> None:
        self._processes[listener] = await asyncio.create_subprocess_exec(
            sys.executable, "-m", PROXY_MODULE, listener.host, str(listener.port), cwd=ROOT
        )

    async def _end(self, listener: Listener) -> None:
        process = self._processes.pop(listener)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def port_of(machine: Machine, default: int) -> int:
    """Return the port of the operator's label, or what the user data sets a squid up for."""
    label = machine.labels.get(PORT_LABEL, "")
    if label.isdecimal():
        return int(label)
    match = re.search(r"^\s*http_port\s+(?:\S+:)?(\d+)", machine.metadata("user-data") or "", re.M)
    return int(match[1]) if match else default

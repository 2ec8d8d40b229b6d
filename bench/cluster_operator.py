"""One process of an operator under `bench.cluster`: started, watched, stopped.

What it does is seen from outside, by its use of the processor, so that any program can be
measured; only that its caches are filled must be said in its log.
"""

import asyncio
import collections
import contextlib
import os
import re
import signal
import time
from pathlib import Path
from typing import Final

from bench.cluster_world import World
from bench.fleet import Usage, usage

IDLE_SECONDS: Final = 1.0
IDLE_SHARE: Final = 0.03
"""Of a core: an operator that used less for so long has nothing left to do."""
SYNCED: Final = re.compile(rb"caches have synced|ANCHOR synced")
PATIENCE: Final = 300
"""Seconds for all that an operator has to do."""


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
        async with asyncio.timeout(PATIENCE):
            while not self._synced.is_set():
                self._check()
                await asyncio.sleep(0.05)

    def _check(self) -> None:
        if self._process.returncode is not None:
            raise SystemExit(f"the operator ended: {self._log.read_text()[-2000:]}")

    async def wait_until_idle(self) -> float:
        """Return the moment of its last work, once that is long enough ago."""
        asked = time.monotonic()
        async with asyncio.timeout(PATIENCE):
            while self.busy_until is None or time.monotonic() - asked < IDLE_SECONDS:
                self._check()
                await asyncio.sleep(0.05)
        return self.busy_until

    async def stop(self) -> None:
        self._sampling.cancel()
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        await self._process.wait()
        await self._reading


def environment(kubeconfig: Path, bytecode: Path) -> dict[str, str]:
    """Return what operators find; Python code is compiled once, as an installed one is."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**env, "KUBECONFIG": str(kubeconfig), "PYTHONPYCACHEPREFIX": str(bytecode)}

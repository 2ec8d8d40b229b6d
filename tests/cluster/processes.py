"""The programs of a cluster as processes: started with a log file each, ended with the tests.

A program dies with the thread that started it, so a killed test run leaves none behind; start
them from the main thread. Only what was started here is ever ended.
"""

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.cluster.programs import ClusterError, of_this_machine


class Processes:
    """Programs by name; what `inside` runs them in a cluster's namespaces."""

    def __init__(self, logs: Path, inside: Sequence[str] = ()) -> None:
        self._logs = logs
        self._inside = list(inside)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *command: str | Path, env: dict[str, str] | None = None) -> int:
        """Start a program and return its process id, which stays the program's own."""
        # Set last, since entering a namespace may cost the setting.
        leash = [of_this_machine("setpriv", "util-linux"), "--pdeathsig", "KILL", "--"]
        self._logs.mkdir(parents=True, exist_ok=True)
        with self._log(name).open("ab") as log:
            started = subprocess.Popen(
                [*self._inside, *leash, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                start_new_session=True,
            )
        self._running[name] = started
        return started.pid

    def pid(self, name: str) -> int:
        return self._running[name].pid

    def stop(self, name: str, *, within: float = 10) -> None:
        """Ask a program to end, wait, then insist. One that was never started is no error."""
        process = self._running.pop(name, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(within)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def end_all(self) -> None:
        """Kill everything that still runs here: what it leaves is thrown away."""
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            process.wait()
        self._running.clear()

    def wait_until(self, what: str, ready: Callable[[], bool], *, within: float) -> None:
        """Wait for a state of the world; a program that ends instead fails at once."""
        deadline = time.monotonic() + within
        while not ready():
            for name, process in self._running.items():
                if process.poll() is not None:
                    raise ClusterError(f"{name} ended by itself: {self._last_words(name)}")
            if time.monotonic() > deadline:
                raise ClusterError(f"no {what} within {within:g} s; logs are in {self._logs}")
            time.sleep(0.05)  # noqa: TID251 - other processes take real time

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def _last_words(self, name: str) -> str:
        lines = self._log(name).read_text(errors="replace").strip().splitlines()
        return lines[-1][:500] if lines else "it wrote no log"

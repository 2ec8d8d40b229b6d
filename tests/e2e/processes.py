"""What runs on this machine, read from /proc: zombies count as gone, but are told apart."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Stat(NamedTuple):
    """A line of /proc/PID/stat, as far as the tests care (proc_pid_stat(5))."""

    pid: int
    state: str
    parent: int
    group: int
    start: int

    @property
    def identity(self) -> tuple[int, int, int]:
        """What stays the same for as long as it is the same process."""
        return self.pid, self.group, self.start


def identities(found: Iterable[Stat]) -> list[tuple[int, int, int]]:
    return sorted(one.identity for one in found)


def stat_of(pid: int) -> Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return Stat(pid, fields[0], int(fields[1]), int(fields[2]), int(fields[19]))


def everybody() -> list[Stat]:
    pids = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
    return [stat for pid in pids if (stat := stat_of(pid))]


def group_of(pgid: int) -> list[Stat]:
    """Living members of a process group."""
    return [one for one in everybody() if one.group == pgid and one.state != "Z"]


def children_of(pid: int) -> list[Stat]:
    return [one for one in everybody() if one.parent == pid]


def arguments_of(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    return []


def environment_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    return ""


def launchers_in(root: Path) -> list[Stat]:
    """Living processes of the instances below `root`."""
    mark = f"{root}/"
    return [
        one
        for one in everybody()
        if one.state != "Z" and any(word.startswith(mark) for word in arguments_of(one.pid)[4:])
    ]


def end_launchers(root: Path) -> None:
    """Kill what runs below `root` until nothing does: a launcher may be forking just now."""
    while found := launchers_in(root):
        for one in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)


def until(question: Callable[[], T], what: str, *, within: float = 20.0, every: float = 0.05) -> T:
    """Ask until the answer is truthy and return it; fail the test at the deadline."""
    deadline = time.monotonic() + within
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {within} s: {what}; last: {answer!r}"
        time.sleep(every)  # noqa: TID251 - other processes take real time

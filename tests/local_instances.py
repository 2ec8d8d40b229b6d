"""Ending, for certain, what a test started below an instance root."""

import contextlib
import json
import os
import signal
from pathlib import Path

from proxy_operator.adapters.providers.local import layout


def process_of(directory: Path) -> int:
    """Return the pid an instance wrote down."""
    return int(json.loads((directory / layout.PROCESS).read_text())["pid"])


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def end_all(root: Path) -> None:
    """Kill every launcher of an instance below root, whatever its files say by now."""
    mark = f"{root}/".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            arguments = path.read_bytes().split(b"\0")
            if len(arguments) > 4 and arguments[4].startswith(mark):
                os.kill(int(path.parent.name), signal.SIGKILL)


def names_in(directory: Path) -> list[str]:
    """Return what lies in a directory; nothing when there is none."""
    return sorted(one.name for one in directory.iterdir()) if directory.exists() else []


def open_descriptors() -> int:
    """Count what this process has open."""
    return len(names_in(Path("/proc/self/fd")))

"""What lies in an instance directory, and how processes are told apart.

Shared by operator and launcher; imports nothing heavy, because every proxy process carries it.
"""

import json
import os
from pathlib import Path
from typing import Any, Final

LOCK: Final = "lock"
"""Held (flock) by the process from before it exists for others until it has gone."""
RECORD: Final = "instance.json"
"""Who owns the instance; written by the operator before the directory gets its name."""
PROCESS: Final = "process.json"
"""`pid` and `start` of the process; written by the process itself, under the lock."""
LISTENING: Final = "listening.json"
"""`host` and `port`; written by the process once it really listens."""
DELETION: Final = "deletion.json"
"""`since` (seconds since boot): the instance is to go, and was told to."""
LOG: Final = "log"
SQUID: Final = "squid"
"""A directory: the files and the working directory of squid, where that is the engine."""

LOCK_FD: Final = 3
"""Where the launcher finds the lock it was born with."""
LOG_BYTES: Final = 1024 * 1024


def write_atomically(path: Path, content: dict[str, Any]) -> None:
    """Make the file hold this JSON, all of it or nothing, also after a power cut."""
    write_bytes(path, json.dumps(content).encode())


def write_bytes(path: Path, content: bytes, owner: int = -1) -> None:
    """Do the same with bytes. `owner`: the UID that may read them, for root only."""
    draft = path.with_name(f"{path.name}.tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, content)
        os.fchown(descriptor, owner, -1)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    draft.rename(path)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return what `write_atomically` wrote, or None when it is absent or not ours."""
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def start_of(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot (proc_pid_stat(5), field 22).

    Together with the pid this names one process for as long as the machine is up. None when
    there is no such process.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(stat.rpartition(b")")[2].split()[19])

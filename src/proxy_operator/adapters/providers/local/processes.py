"""Locks, and starting and ending the process of an instance. Every call may block: use a thread.

The lock is the truth about what runs. It is taken before the process is started and handed to it,
so there is no moment at which a living process could be missed; a pid is used only to send a
signal, and only after it was proven to be the process that wrote it down.
"""

import fcntl
import json
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any, Final

from proxy_operator.adapters.providers.local import layout, manifests

START_SECONDS: Final = 10.0
"""How long a start is watched; a slower one goes on unwatched."""


def try_lock(directory: Path) -> int | None:
    """Take the instance's lock; None when it is held. The caller closes the descriptor.

    FileNotFoundError when there is no such directory.
    """
    descriptor = os.open(directory / layout.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def is_locked(directory: Path) -> bool:
    """Tell whether a process of this instance lives."""
    try:
        descriptor = os.open(directory / layout.LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def start(directory: Path, lock: int, settings: bytes) -> dict[str, Any] | None:
    """Start the launcher with the lock, and return its first words.

    `{"host", "port"}` when it listens, `{"error"}` when it cannot, `{}` when it died without a
    word; None when it takes longer than `START_SECONDS`. OSError when nothing was started.
    """
    directory = directory.absolute()
    stdin_read, stdin_write = os.pipe()
    stdout_read, stdout_write = os.pipe()
    given = [_above_standard(fd) for fd in (stdin_read, stdout_write)]
    lock_copy = fcntl.fcntl(lock, fcntl.F_DUPFD_CLOEXEC, 10)
    try:
        pid = os.posix_spawn(
            sys.executable,
            manifests.arguments_for(sys.executable, directory),
            manifests.environment_for(directory),
            file_actions=[
                (os.POSIX_SPAWN_DUP2, given[0], 0),
                (os.POSIX_SPAWN_DUP2, given[1], 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, lock_copy, layout.LOCK_FD),
            ],
        )
    except BaseException:
        os.close(stdin_write)
        os.close(stdout_read)
        raise
    finally:
        for descriptor in (*given, lock_copy):
            os.close(descriptor)
    try:
        _send(stdin_write, settings)
        reap(pid, wait=True)
        return _first_words(stdout_read)
    finally:
        os.close(stdout_read)


def _above_standard(descriptor: int) -> int:
    """Move a descriptor out of the way of those the child gets."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


def _send(descriptor: int, content: bytes) -> None:
    with os.fdopen(descriptor, "wb", buffering=0) as pipe:
        try:
            while content:
                content = content[pipe.write(content) :]
        except BrokenPipeError:
            return  # it died; its silence will tell


def _first_words(descriptor: int) -> dict[str, Any] | None:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    if not poller.poll(START_SECONDS * 1000):
        return None
    line = os.read(descriptor, 4096)
    words: dict[str, Any] = json.loads(line or b"{}")
    return words


def tell_to_end(directory: Path, *, by_force: bool) -> None:
    """Signal the instance's process group, when it is proven to be that.

    Call only while the lock is held by it: then a leader with the recorded start time is the
    one, and a leader that has gone left its number to its group (Linux reuses no number that
    still names a group).
    """
    process = layout.read_json(directory / layout.PROCESS)
    if process is None:
        return  # it has just been started: it is told the next time
    pid, start = process["pid"], process["start"]
    if layout.start_of(pid) not in (start, None):
        return
    try:
        os.killpg(pid, signal.SIGKILL if by_force else signal.SIGTERM)
    except ProcessLookupError:
        return


def reap(pid: int, *, wait: bool = False) -> None:
    """Collect a child that has ended; no error when it is not ours.

    A process of an earlier operator is a child of ours when we are process 1 of a container.
    """
    try:
        os.waitpid(pid, 0 if wait else os.WNOHANG)
    except ChildProcessError:
        return


def reap_ended(directory: Path) -> None:
    """Collect what may be left of an instance whose lock is free."""
    process = layout.read_json(directory / layout.PROCESS)
    if process is not None and layout.start_of(process["pid"]) == process["start"]:
        reap(process["pid"])

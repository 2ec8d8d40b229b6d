"""The lock that makes one operator at a time the owner of a data directory.

The lock is flock(2) on an open file: it ends with the process, however that ends. The pid in the
file is for people only.
"""

import asyncio
import fcntl
import os
from typing import Final, Self

from proxy_operator.adapters.embedded.data_dir import DataDir, make_private
from proxy_operator.adapters.embedded.errors import DataDirError

# Somebody who asks `is_operator_running` holds the lock for microseconds.
_ATTEMPTS: Final = 5
_PAUSE_SECONDS: Final = 0.02


class OperatorLock:
    """Held for the operator's life; `async with` acquires and releases it."""

    def __init__(self, data_dir: DataDir) -> None:
        self._data_dir = data_dir
        self._descriptor: int | None = None

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.release()

    async def acquire(self) -> None:
        """Take the lock; DataDirError when another operator has it."""
        descriptor = _open(self._data_dir)
        try:
            await self._lock(descriptor)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    async def _lock(self, descriptor: int) -> None:
        for _ in range(_ATTEMPTS):
            if _try_lock(descriptor):
                return
            await asyncio.sleep(_PAUSE_SECONDS)
        raise DataDirError(_refusal(self._data_dir, descriptor))

    def release(self) -> None:
        """Let the next operator in; harmless when not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_operator_running(data_dir: DataDir) -> bool:
    """Tell whether some process holds the operator's lock now."""
    return _holder_of(data_dir) is not None


def refuse_second_operator(data_dir: DataDir) -> None:
    """Raise DataDirError when some process holds the operator's lock now."""
    if (refusal := _holder_of(data_dir)) is not None:
        raise DataDirError(refusal)


def _holder_of(data_dir: DataDir) -> str | None:
    """Say who holds the lock; None when nobody does."""
    if not data_dir.lock_path.exists():
        return None
    descriptor = _open(data_dir)
    try:
        return None if _try_lock(descriptor) else _refusal(data_dir, descriptor)
    finally:
        os.close(descriptor)


def _open(data_dir: DataDir) -> int:
    try:
        make_private(data_dir.lock_path)
        return os.open(data_dir.lock_path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as err:
        raise DataDirError(
            f"lock file {data_dir.lock_path} cannot be opened: {err.strerror}"
        ) from err


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _refusal(data_dir: DataDir, descriptor: int) -> str:
    pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
    holder = f"pid {pid}" if pid.isdecimal() else "pid unknown"
    return (
        f"another operator ({holder}) is running on data directory {data_dir.path}:"
        " stop it first, or choose another --data-dir"
    )

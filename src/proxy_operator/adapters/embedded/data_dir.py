"""The directory everything of a standalone home lives in, and who may use it.

Credentials are kept here: nothing in it is ever readable by another user.
"""

import os
import stat
from pathlib import Path
from typing import Final

from proxy_operator.adapters.embedded.errors import DataDirError

DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600


class DataDir:
    """Paths in the data directory, and the checks on it."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @property
    def store_path(self) -> Path:
        """The SQLite file; its `-wal` and `-shm` stand beside it, with its mode (SQLite's own)."""
        return self.path / "store.sqlite3"

    @property
    def lock_path(self) -> Path:
        """The file the operator holds locked."""
        return self.path / "lock"

    def prepare(self, *, create: bool) -> None:
        """Check the directory and close it to other users; DataDirError says what is wrong.

        With `create` a missing one is made, parents too; without, it must be there.
        """
        try:
            if create:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
            self._check()
        except FileNotFoundError as err:
            if create:
                raise DataDirError(
                    f"data directory {self.path} cannot be made: its file system takes no new"
                    " directory there; choose another --data-dir"
                ) from err
            raise DataDirError(
                f"data directory {self.path} does not exist: apply a manifest or start"
                " `proxy-operator run --standalone` with it once, or correct --data-dir"
            ) from err
        except FileExistsError as err:
            raise DataDirError(
                f"data directory {self.path} is not a directory: choose another --data-dir"
            ) from err
        except OSError as err:
            raise DataDirError(
                f"data directory {self.path} cannot be used: {err.strerror}"
            ) from err

    def _check(self) -> None:
        found = self.path.stat()
        if not stat.S_ISDIR(found.st_mode):
            raise FileExistsError
        if found.st_uid != os.geteuid():
            raise DataDirError(
                f"data directory {self.path} belongs to user id {found.st_uid} and this process"
                f" runs as {os.geteuid()}: run as its owner, or choose another --data-dir"
            )
        if stat.S_IMODE(found.st_mode) != DIRECTORY_MODE:
            self.path.chmod(DIRECTORY_MODE)
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise DataDirError(
                f"data directory {self.path} is not writable: remount it writable, or choose"
                " another --data-dir"
            )


def make_private(path: Path) -> None:
    """Make an empty file of mode 0600 whatever the umask, or give the existing one that mode.

    An existing file is never opened: closing it would drop the POSIX locks that SQLite holds on
    it in this process (fcntl(2)).
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    except FileExistsError:
        if stat.S_IMODE(path.stat().st_mode) != FILE_MODE:
            path.chmod(FILE_MODE)
        return
    try:
        os.fchmod(descriptor, FILE_MODE)
    finally:
        os.close(descriptor)

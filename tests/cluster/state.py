"""The directory of a running cluster, in memory where there is such: etcd and images write much.

Its lock is held for as long as the test run lives, so a later run can tell and remove what a
killed one has left. The directory's name is that of the cluster's control groups too.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.programs import BUILD

PREFIX = "proxy-operator-test-"
NAMESPACES = BUILD.with_name("namespaces")


@contextmanager
def state_directory() -> Iterator[Path]:
    """Lend a private directory and remove it afterwards."""
    memory = Path("/dev/shm")
    parent = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    _sweep(parent)
    state = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    # Named when it is locked already, so nobody finds it unlocked.
    with (state / "lock.new").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (state / "lock.new").rename(state / "lock")
        try:
            yield state
        finally:
            shutil.rmtree(state)


def _sweep(parent: Path) -> None:
    """Remove what killed runs of this user have left; their processes died with them."""
    for lock in parent.glob(f"{PREFIX}*/lock"):
        try:
            with lock.open("r+") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.geteuid() == 0:
                    subprocess.run([NAMESPACES, "remove", lock.parent.name], check=False)
                shutil.rmtree(lock.parent, ignore_errors=True)
        except OSError:
            continue  # in use, another user's, or gone meanwhile

"""Fixtures that lend a test session its cluster.

A conftest makes one its own by importing it and naming it in `__all__`.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.programs import ClusterError, for_control_plane


@pytest.fixture(scope="session")
def kube_api() -> Iterator[ControlPlane]:
    """An API server of this session's own, without nodes or controllers."""
    state = state_directory()
    try:
        plane = ControlPlane(for_control_plane(), state)
        try:
            plane.start()
            yield plane
        finally:
            plane.stop()
    except ClusterError as err:
        pytest.fail(str(err), pytrace=False)
    finally:
        shutil.rmtree(state)


def state_directory() -> Path:
    """Make a private directory, in memory where there is such: etcd and images are all writes."""
    memory = "/dev/shm"
    is_usable = os.path.isdir(memory) and os.access(memory, os.W_OK)
    return Path(tempfile.mkdtemp(prefix="cluster-", dir=memory if is_usable else None))

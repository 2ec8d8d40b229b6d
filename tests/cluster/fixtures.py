"""Fixtures that lend a test session its cluster.

A conftest makes one its own by importing it and naming it in `__all__`.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.existing import ExistingCluster
from tests.cluster.node import NodeCluster
from tests.cluster.programs import ClusterError, for_control_plane, for_node
from tests.cluster.state import state_directory

T = TypeVar("T", ControlPlane, NodeCluster, ExistingCluster)


@pytest.fixture(scope="session")
def kube_api() -> Iterator[ControlPlane]:
    """An API server of this session's own, without nodes or controllers."""
    with running(lambda state: ControlPlane(for_control_plane(), state)) as plane:
        yield plane


@pytest.fixture(scope="session")
def node_cluster() -> Iterator[NodeCluster | ExistingCluster]:
    """A cluster that runs Pods: that of KUBECONFIG, or one of this session's own (needs root)."""
    kubeconfig = os.environ.get("KUBECONFIG")
    if kubeconfig:
        with running(lambda _: ExistingCluster(Path(kubeconfig))) as existing:
            yield existing
    else:
        with running(lambda state: NodeCluster(for_node(), state)) as own:
            yield own


@contextmanager
def running(make: Callable[[Path], T]) -> Iterator[T]:
    """Start what `make` makes for a state directory, and end it and the directory afterwards."""
    with state_directory() as state:
        try:
            made = make(state)
            try:
                made.start()
                yield made
            finally:
                made.stop()
        except ClusterError as err:
            pytest.fail(str(err), pytrace=False)

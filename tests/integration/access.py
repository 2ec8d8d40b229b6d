"""The operator's own client on the session's API server."""

import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from proxy_operator.adapters.kube.client import KubeClient
from proxy_operator.adapters.kube.resources import NAMESPACE, ResourceClient
from proxy_operator.adapters.kube.sources import discover_access
from proxy_operator.runtime.clock import SystemClock
from tests.cluster.control_plane import ControlPlane


@asynccontextmanager
async def connected(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    """Yield an open client with the administrator's rights."""
    access = discover_access(plane.kubeconfig, None, os.environ, SystemClock())
    async with KubeClient(access) as client:
        yield client


async def make_namespace(client: KubeClient, prefix: str) -> str:
    """Make a namespace that no other test uses, and return its name."""
    name = f"{prefix}-{uuid.uuid4().hex[:8]}"
    await ResourceClient(client).create(NAMESPACE, {"metadata": {"name": name}}, "test")
    return name

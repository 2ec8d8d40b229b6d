"""Instances below a temporary root; whatever a test started has ended when it is over."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy_operator.adapters.providers.local.instances import Instances
from proxy_operator.domain.instance import Instance, InstanceState
from proxy_operator.domain.proxy import ProxySpec
from proxy_operator.domain.secret import Credentials
from proxy_operator.provisioning.contract import CreateRequest
from proxy_operator.runtime.clock import SystemClock
from tests.builders import a_create_request, a_proxy
from tests.local_instances import end_all
from tests.unit.adapters.providers.local.targets import pause


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "instances"
    yield path
    end_all(path)


@pytest.fixture
def instances(root: Path) -> Instances:
    return Instances(root, bind="127.0.0.1", cluster_id="cluster-1", clock=SystemClock())


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., int]]:
    """Start a proxy that lives as long as the module's tests; gives its port."""
    path = tmp_path_factory.mktemp("engine") / "instances"
    shared = Instances(path, bind="127.0.0.1", cluster_id="cluster-1", clock=SystemClock())

    def start_one(credentials: Credentials | None = None, **spec: Any) -> int:
        request = a_request(credentials=credentials, **spec)
        shared.create(request, threading.Event())
        port = when_running(shared, request.name).port
        assert port is not None
        return port

    yield start_one
    end_all(path)


def when_running(instances: Instances, name: str) -> Instance:
    """Wait for an instance that a busy machine starts more slowly than a create watches."""
    deadline = time.monotonic() + 30
    while (found := instances.observe(name)) is None or found.state is not InstanceState.RUNNING:
        assert time.monotonic() < deadline
        pause(0.05)
    return found


def a_request(
    *, credentials: Credentials | None = None, user_data: bytes | None = None, **spec: Any
) -> CreateRequest:
    proxy = a_proxy()
    return a_create_request(
        proxy,
        credentials=credentials,
        user_data=user_data,
        spec=ProxySpec(provider=proxy.spec.provider, **spec),
    )

"""Every test here speaks to one real API server, started for the session."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy_operator.adapters.admission.crd import document
from tests.cluster.control_plane import ControlPlane
from tests.cluster.fixtures import kube_api
from tests.e2e.conftest import origin
from tests.integration.replicas import ClusterSite
from tests.integration.secret_site import SecretSite

__all__ = ["kube_api", "origin"]


@pytest.fixture(scope="session")
def proxy_api(kube_api: ControlPlane) -> ControlPlane:
    """The API server, serving Proxies."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    status, answer = kube_api.api.send("POST", path, document())
    assert status == 201, answer
    end = time.monotonic() + 30
    while kube_api.api.send("GET", "/apis/crawl.example.com/v1alpha1/proxies")[0] != 200:
        assert time.monotonic() < end, "the API server does not serve proxies"
    return kube_api


@pytest.fixture
def site(proxy_api: ControlPlane, tmp_path: Path) -> Iterator[ClusterSite]:
    """A namespace for the operators of one test, which end with it."""
    made = ClusterSite(proxy_api, tmp_path)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def secret_site(
    proxy_api: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecretSite]:
    """A namespace of the module's own; operators started there end with the module."""
    made = SecretSite(proxy_api, tmp_path_factory.mktemp("site"))
    try:
        yield made
    finally:
        made.close()

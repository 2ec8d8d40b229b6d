"""Every test here runs against one real cluster with a node, started for the session.

What several modules share is made once; each test takes a namespace of its own.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.existing import ExistingCluster
from tests.cluster.fixtures import node_cluster
from tests.cluster.node import NodeCluster
from tests.e2e_cluster.crawling import Inside, Origin
from tests.e2e_cluster.installation import CRAWLERS, Installation, install_kind, uninstall
from tests.e2e_cluster.kube import PROXY_API, Kube, until

__all__ = ["node_cluster"]

ARCHIVE = Path(__file__).parents[2] / "dist" / "image.tar"


@pytest.fixture(scope="session")
def kube(node_cluster: NodeCluster | ExistingCluster) -> Kube:
    """The cluster, with the operator's image on its node."""
    if not ARCHIVE.exists():
        pytest.fail(f"{ARCHIVE} is missing; run `make image`", pytrace=False)
    node_cluster.import_image(ARCHIVE)
    return Kube(node_cluster)


@pytest.fixture(scope="session")
def proxy_kind(kube: Kube) -> Iterator[None]:
    """The CRD, without an operator."""
    install_kind(kube)
    yield
    uninstall(kube)


@pytest.fixture(scope="session")
def crawlers(kube: Kube) -> Iterator[str]:
    """A namespace that may use the discovery API, with an origin and a crawler."""
    with kube.namespace("crawlers", CRAWLERS) as namespace:
        yield namespace


@pytest.fixture(scope="session")
def origin(kube: Kube, crawlers: str) -> Origin:
    """A page that squid Pods may fetch although it is inside the cluster."""
    return Origin(kube, crawlers)


@pytest.fixture(scope="session")
def inside(kube: Kube, crawlers: str) -> Inside:
    """A crawler in a Pod."""
    return Inside(kube, crawlers)


@pytest.fixture(scope="session")
def operator(kube: Kube, origin: Origin) -> Iterator[Installation]:
    """The operator, installed as the documentation says."""
    made = Installation(kube, origin)
    try:
        made.wait_available()
        yield made
        # Those of namespaces on their way out, which need an operator to go.
        until("end of all Proxies", lambda: not kube.items(f"{PROXY_API}/proxies"), within=60)
    finally:
        uninstall(kube)

"""Whether the cluster keeps to the operator's NetworkPolicy, which only some network plugins do."""

from tests.cluster.node import NodeCluster
from tests.e2e_cluster.crawling import Inside
from tests.e2e_cluster.installation import NAMESPACE, Installation
from tests.e2e_cluster.kube import Kube


def test_who_reaches_the_api(kube: Kube, operator: Installation, inside: Inside) -> None:
    path = f"apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies/proxy-operator"
    assert kube.get(path)
    assert inside.ask(f"{operator.api}/healthz").status == 200
    with kube.namespace("stranger") as namespace:
        answer = Inside(kube, namespace).ask(f"{operator.api}/healthz")
    if isinstance(kube.cluster, NodeCluster):
        # The plugin `bridge` enforces nothing (docs/testing.md): the token is all there is.
        assert answer.status == 200, answer

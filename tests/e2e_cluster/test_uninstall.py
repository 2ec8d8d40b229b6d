"""Uninstalled in the wrong order: `down` still leaves nothing.

By its name the last module: the operator that the others share is gone after it.
"""

import subprocess
from typing import NamedTuple

from tests.e2e.home import COMMAND, environment
from tests.e2e_cluster.fleet import a_squid, credentials
from tests.e2e_cluster.installation import INSTALL, NAMESPACE, Installation
from tests.e2e_cluster.kube import PROXY_API, Kube, until

CRD = "apis/apiextensions.k8s.io/v1/customresourcedefinitions/proxies.crawl.example.com"
MADE = "labelSelector=app.kubernetes.io/managed-by%3Dproxy-operator"


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def test_down_after_the_operator_has_gone_leaves_nothing(
    kube: Kube, operator: Installation
) -> None:
    with kube.namespace("leaving") as namespace:
        kube.apply(credentials(namespace, "login", "p"))
        kube.apply(a_squid(namespace, "one", secret="login"), a_squid(namespace, "two"))
        for name in ("one", "two"):
            kube.wait_ready(namespace, name)

        # Returns at once; what waits for the Proxies' finalizers is the CRD.
        kube.kubectl("delete", f"--filename={INSTALL}", "--wait=false")
        path = f"api/v1/namespaces/{NAMESPACE}"
        until("end of the operator", lambda: kube.get(path) is None, within=60)
        assert len(kube.items(f"{PROXY_API}/namespaces/{namespace}/proxies")) == 2

        stuck = down(kube, "--timeout=4s")
        assert stuck.code != 0
        assert f"namespace {NAMESPACE} does not exist" in stuck.out + stuck.err

        ended = down(kube, "--leader-namespace=default", "--timeout=60s")
        assert ended.code == 0, ended
        assert ended.out.endswith("\nno Proxy is left, and no instance at kubernetes\n")

        until("end of the CRD", lambda: kube.get(CRD) is None, within=30)
        until("end of what was made", lambda: made(kube) == [], within=30)
        assert kube.items("apis/coordination.k8s.io/v1/namespaces/default/leases") == []


def down(kube: Kube, *options: str) -> Ended:
    """Run the command on this machine to its end."""
    done = subprocess.run(
        [COMMAND, "down", f"--kubeconfig={kube.cluster.kubeconfig}", *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment(),
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def made(kube: Kube) -> list[str]:
    """Return what there is of the operator's in all namespaces."""
    return [
        one["metadata"]["name"]
        for kind in ("pods", "configmaps", "secrets")
        for one in kube.items(f"api/v1/{kind}?{MADE}")
    ]

"""Uninstalling leaves nothing. By its name the last module: the operator is gone after it."""

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e_cluster.fleet import a_squid, credentials
from tests.e2e_cluster.installation import NAMESPACE, Installation, uninstall
from tests.e2e_cluster.kube import PROXY_API, Kube, until

PROGRAM = Path(sys.executable).with_name("proxy-operator")
CRD = "apis/apiextensions.k8s.io/v1/customresourcedefinitions/proxies.crawl.example.com"
ROLES = "apis/rbac.authorization.k8s.io/v1"


def test_down_and_delete_leave_nothing(kube: Kube, operator: Installation) -> None:
    with kube.namespace("leaving") as namespace:
        kube.apply(credentials(namespace, "login", "p"))
        kube.apply(a_squid(namespace, "one", secret="login"), a_squid(namespace, "two"))
        for name in ("one", "two"):
            kube.wait_ready(namespace, name)

        said = down(kube)

        assert said.endswith("no Proxy and no instance is left\n")
        assert kube.items(f"{PROXY_API}/proxies") == []
        until("end of all that was made", lambda: made(kube) == [], within=30)

        uninstall(kube)

        assert kube.get(f"api/v1/namespaces/{NAMESPACE}") is None
        assert kube.get(CRD) is None
        for kind in ("clusterroles", "clusterrolebindings"):
            names = [one["metadata"]["name"] for one in kube.items(f"{ROLES}/{kind}")]
            assert [name for name in names if NAMESPACE in name] == []


def made(kube: Kube) -> list[str]:
    """Return what there is of the operator's in all namespaces."""
    squids = "labelSelector=app.kubernetes.io/managed-by%3Dproxy-operator"
    return [
        one["metadata"]["name"]
        for kind in ("pods", "configmaps", "secrets")
        for one in kube.items(f"api/v1/{kind}?{squids}")
    ]


def down(kube: Kube) -> str:
    """Run the command on this machine, and return what it says."""
    command = [str(PROGRAM), "down", f"--kubeconfig={kube.cluster.kubeconfig}", "--timeout=90s"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=clean()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def clean() -> dict[str, str]:
    """Return the environment without what would choose another cluster or home."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PROXY_OPERATOR_") and name != "KUBECONFIG"
    }

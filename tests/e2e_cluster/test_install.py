"""From nothing to a lease and back to nothing, by the commands of docs/operations.md.

It needs the cluster to itself; what modules share is made by later ones in the alphabet.
"""

import json
import subprocess
import time
from pathlib import Path

import pytest
from hack.deploy.workload import HEALTH_URL

from tests.e2e.home import COMMAND, environment
from tests.e2e.processes import until

ROOT = Path(__file__).parents[2]
ARCHIVE = ROOT / "dist" / "image.tar"
OWN = "--namespace=proxy-operator"
IN_FLEET = "--namespace=fleet"
DEVELOPER = "--as=developer"
TOKEN_FILE = "/etc/proxy-operator/discovery/token"
LEFT_BY_NAME = "clusterrole,clusterrolebinding,namespace,customresourcedefinition"
MANIFESTS = """\
apiVersion: v1
kind: Secret
metadata:
  name: login
  labels:
    crawl.example.com/credentials: "true"
stringData:
  username: crawler
  password: "any text: will do"
---
apiVersion: crawl.example.com/v1alpha1
kind: Proxy
metadata:
  name: squid
spec:
  provider: kubernetes
  credentialsSecretRef:
    name: login
"""
FETCH = """\
import sys
import urllib.request

proxies = urllib.request.ProxyHandler({"http": sys.argv[1]})
print(urllib.request.build_opener(proxies).open(sys.argv[2], timeout=10).read().decode())
"""


@pytest.fixture(scope="module")
def cluster(node_cluster):
    if not ARCHIVE.exists():
        pytest.fail(f"{ARCHIVE} is missing; run `make image`", pytrace=False)
    node_cluster.import_image(ARCHIVE)
    return node_cluster


def rolled_out(cluster) -> None:
    status = ("rollout", "status", OWN, "deployment/proxy-operator", "--timeout=120s")
    cluster.kubectl(*status)


def in_operator(cluster, *command: str) -> str:
    said: str = cluster.kubectl("exec", OWN, "deployment/proxy-operator", "--", *command)
    return said


def test_what_is_installed_by_hand_lends_a_proxy_and_leaves_nothing(cluster, tmp_path):
    install = tmp_path / "install.yaml"
    shipped = (ROOT / "deploy/install.yaml").read_text()
    install.write_text(shipped)
    applied = f"--filename={install}"

    cluster.kubectl("apply", applied)
    token = ("create", "secret", "generic", OWN, "discovery-token", "--from-file=token=/dev/stdin")
    cluster.kubectl(*token, stdin="Tok3n-of-the-tests\n")
    rolled_out(cluster)

    # Squid Pods reach nothing in the cluster, and a test cluster reaches nothing else.
    service = cluster.kubectl(
        "get", "service", OWN, "proxy-operator", "--output=jsonpath={.spec.clusterIP}"
    )
    page = f"http://{service}:8090/healthz"
    own = f"--health-url={page}\n            - --allow-targets={service}:8090"
    install.write_text(shipped.replace(f"--health-url={HEALTH_URL}", own))
    cluster.kubectl("apply", applied)
    rolled_out(cluster)

    cluster.kubectl("create", "namespace", "fleet")
    binding = ("create", "rolebinding", IN_FLEET, "developers", "--clusterrole=edit")
    cluster.kubectl(*binding, "--user=developer")
    # Joined to the built-in role by a controller, a moment after it was made.
    asked = ("auth", "can-i", "create", "proxies.crawl.example.com", IN_FLEET, DEVELOPER)
    until(lambda: can(cluster, *asked), "the built-in role holds Proxies")
    cluster.kubectl("apply", IN_FLEET, DEVELOPER, "--filename=-", stdin=MANIFESTS)
    ready = ("--for=jsonpath={.status.phase}=Ready", "--timeout=60s")
    cluster.kubectl("wait", IN_FLEET, DEVELOPER, "proxy/squid", *ready)
    reasons = ("get", "events", IN_FLEET, "--output=jsonpath={.items[*].reason}")
    # Events follow what they tell of within a second or so.
    until(lambda: "BecameHealthy" in cluster.kubectl(*reasons), "the Event of the first verdict")

    url = in_operator(cluster, "proxy-operator", "lease", "--token-file", TOKEN_FILE).strip()
    assert url.startswith("http://crawler:any%20text%3A%20will%20do@")
    assert in_operator(cluster, "python3", "-c", FETCH, url, page).strip()
    holder = ("get", "lease", OWN, "proxy-operator", "--output=jsonpath={.spec.holderIdentity}")
    assert cluster.kubectl(*holder).startswith("proxy-operator-")

    down = subprocess.run(
        [COMMAND, "down", "--kubeconfig", str(cluster.kubeconfig), "--timeout", "60s"],
        capture_output=True,
        text=True,
        env=environment(),
        cwd=tmp_path,
        check=False,
    )
    assert down.returncode == 0, down.stderr
    pods = json.loads(cluster.kubectl("get", "pods,configmaps", IN_FLEET, "--output=json"))
    left = [one["metadata"]["name"] for one in pods["items"]]
    assert [name for name in left if name != "kube-root-ca.crt"] == []

    began = time.monotonic()
    cluster.kubectl("delete", applied)
    assert time.monotonic() - began < 60
    names = cluster.kubectl("get", LEFT_BY_NAME, "--output=name").splitlines()
    assert [name for name in names if "proxy-operator" in name or "crawl" in name] == []
    cluster.kubectl("delete", "namespace", "fleet")


def can(cluster, *question: str) -> bool:
    try:
        said: str = cluster.kubectl(*question)
    except subprocess.CalledProcessError:  # the answer no
        return False
    return said.strip() == "yes"

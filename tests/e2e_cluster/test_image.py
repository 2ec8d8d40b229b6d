"""The operator's image, run under the restricted Pod security profile."""

import json
from pathlib import Path

import pytest

from proxy_operator import __version__

ARCHIVE = Path(__file__).parents[2] / "dist" / "image.tar"
NAMESPACE = "image-test"


@pytest.fixture(scope="module")
def cluster(node_cluster):
    if not ARCHIVE.exists():
        pytest.fail(f"{ARCHIVE} is missing; run `make image`", pytrace=False)
    node_cluster.import_image(ARCHIVE)
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": NAMESPACE, "labels": labels}
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    node_cluster.kubectl("apply", "--filename=-", stdin=json.dumps(made))
    yield node_cluster
    node_cluster.kubectl("delete", "namespace", NAMESPACE)


def pod(name: str, *arguments: str) -> str:
    container = {
        "name": "operator",
        "image": f"localhost/proxy-operator:{__version__}",
        "imagePullPolicy": "Never",
        "args": arguments,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    metadata = {"name": name, "namespace": NAMESPACE}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


@pytest.mark.parametrize(
    ("argument", "said"),
    [("--version", f"proxy-operator {__version__}"), ("--help", "Usage: proxy-operator")],
)
def test_the_image_runs_as_its_own_user_on_a_read_only_root(cluster, argument, said):
    name = f"says{argument.removeprefix('-')}"
    cluster.kubectl("apply", "--filename=-", stdin=pod(name, argument))

    waiting = ["--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s"]
    cluster.kubectl("wait", f"--namespace={NAMESPACE}", f"pod/{name}", *waiting)

    assert said in cluster.kubectl("logs", f"--namespace={NAMESPACE}", name)

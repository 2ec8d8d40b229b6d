"""The operator's image, run under the restricted Pod security profile."""

import pytest

from proxy_operator import __version__
from tests.e2e_cluster.kube import Kube
from tests.e2e_cluster.pods import a_pod


@pytest.mark.parametrize(
    ("argument", "said"),
    [("--version", f"proxy-operator {__version__}"), ("--help", "Usage: proxy-operator")],
)
def test_the_image_runs_as_its_own_user_on_a_read_only_root(
    kube: Kube, argument: str, said: str
) -> None:
    with kube.namespace("image") as namespace:
        kube.apply(a_pod(namespace, "says", args=[argument]))

        waiting = ["--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s"]
        kube.kubectl("wait", f"--namespace={namespace}", "pod/says", *waiting)

        assert said in kube.kubectl("logs", f"--namespace={namespace}", "says")

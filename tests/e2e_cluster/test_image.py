"""The operator's image, run under the restricted Pod security profile."""

from proxy_operator import __version__
from tests.e2e_cluster.kube import Kube
from tests.e2e_cluster.pods import a_pod

SAYS = {"--version": f"proxy-operator {__version__}", "--help": "Usage: proxy-operator"}


def test_the_image_runs_as_its_own_user_on_a_read_only_root(kube: Kube) -> None:
    with kube.namespace("image") as namespace:
        names = {argument: f"says{argument.removeprefix('-')}" for argument in SAYS}
        kube.apply(*(a_pod(namespace, name, args=[one]) for one, name in names.items()))

        here = f"--namespace={namespace}"
        waiting = ["--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s"]
        kube.kubectl("wait", here, *(f"pod/{name}" for name in names.values()), *waiting)

        for argument, said in SAYS.items():
            assert said in kube.kubectl("logs", here, names[argument])

"""The operator's Pod is killed: the next one leads, and makes nothing anew."""

from tests.e2e_cluster.crawling import Inside
from tests.e2e_cluster.fleet import a_squid
from tests.e2e_cluster.installation import NAMESPACE, Installation
from tests.e2e_cluster.kube import Kube, until


def test_a_killed_operator_is_succeeded(kube: Kube, operator: Installation, inside: Inside) -> None:
    with kube.namespace("takeover") as namespace:
        kube.apply(a_squid(namespace, "before"))
        before = kube.wait_ready(namespace, "before")
        (instance,) = kube.pods_of(before)
        leader = operator.leader()
        assert leader
        (pod,) = operator.pods()

        kube.kubectl(
            "delete", "pod", pod["metadata"]["name"], f"--namespace={NAMESPACE}",
            "--force", "--grace-period=0",
        )  # fmt: skip
        kube.apply(a_squid(namespace, "after"))

        until("other leader", lambda: operator.leader() not in ("", leader), within=60)
        after = kube.wait_ready(namespace, "after")
        operator.wait_available()
        assert len(kube.pods_of(after)) == 1
        assert [one["metadata"]["uid"] for one in kube.pods_of(before)] == [
            instance["metadata"]["uid"]
        ]
        stored = kube.wait_ready(namespace, "before")
        assert stored["metadata"]["generation"] == before["metadata"]["generation"]

        def leased() -> object:
            answer = operator.ask(inside, "POST", "/v1/leases", {"namespace": namespace})
            return answer.status == 201

        until("lease from the next leader", leased, within=30)

"""What a user does with the operator installed, from the first manifest to the last."""

from typing import Any
from urllib.parse import quote, urlsplit

from tests.e2e_cluster.crawling import Inside, Origin, Outside
from tests.e2e_cluster.fleet import USER, a_squid, credentials
from tests.e2e_cluster.installation import Installation
from tests.e2e_cluster.kube import Kube, until

OLD, NEW = "p@s:s/#%", "p$x\"q'-pässwörd"
OWNED = ("pods", "configmaps", "secrets")


def test_from_apply_to_delete(
    kube: Kube, operator: Installation, origin: Origin, inside: Inside
) -> None:
    with kube.namespace("story") as namespace:
        kube.apply(credentials(namespace, "login", OLD))
        kube.apply(*(a_squid(namespace, name, secret="login") for name in ("one", "two")))
        for name in ("one", "two"):
            kube.wait_ready(namespace, name)
        lease_and_fetch(kube, operator, origin, inside, namespace)
        kube.kubectl("delete", "proxy", "two", f"--namespace={namespace}", "--timeout=60s")
        rotate(kube, operator, origin, inside, namespace)
        kube.kubectl("delete", "proxy", "one", f"--namespace={namespace}", "--timeout=60s")
        # The users file goes with its Pod, which the cluster sees to a moment later.
        until("end of what was made", lambda: made(kube, namespace) == [], within=30)


def lease_and_fetch(
    kube: Kube, operator: Installation, origin: Origin, inside: Inside, namespace: str
) -> None:
    """Lease both, from inside and from outside, fetch through both; one is banned."""
    outside = Outside()
    wanted = {"namespace": namespace, "target": "a.example"}
    mine = operator.lease(inside, **wanted)
    theirs = operator.lease(outside, **wanted)
    assert {one["proxy"]["name"] for one in (mine, theirs)} == {"one", "two"}
    for grant in (mine, theirs):
        proxy = kube.proxy(namespace, grant["proxy"]["name"])
        assert proxy
        addresses = {pod["status"]["podIP"] for pod in kube.pods_of(proxy)}
        assert {urlsplit(grant["proxy"]["url"]).hostname} == addresses
        for crawler in (inside, outside):
            for page in origin.fetch_both(crawler, grant["proxy"]["url"]):
                assert page.status == 200, page
                assert {page.json["from"]} == addresses

    report = {"result": "banned", "target": "a.example"}
    said = operator.ask(inside, "POST", f"/v1/leases/{mine['leaseID']}/report", report)
    assert said.status == 204, said
    again = [operator.lease(inside, **wanted)["proxy"]["name"] for _ in range(3)]
    assert set(again) == {theirs["proxy"]["name"]}
    said = operator.ask(outside, "POST", f"/v1/leases/{theirs['leaseID']}/report", report)
    assert said.status == 204, said
    assert operator.ask(inside, "POST", "/v1/leases", wanted).status == 409
    operator.lease(inside, namespace=namespace, target="b.example")


def rotate(
    kube: Kube, operator: Installation, origin: Origin, inside: Inside, namespace: str
) -> None:
    """Change the password: another Pod, which knows the new one alone."""
    proxy = kube.wait_ready(namespace, "one")
    (before,) = kube.pods_of(proxy)
    kube.apply(credentials(namespace, "login", NEW))

    def replaced() -> Any:
        pods = kube.pods_of(proxy)
        return [pod["metadata"]["uid"] for pod in pods] not in ([], [before["metadata"]["uid"]])

    until("replaced Pod", replaced, within=60)
    kube.wait_ready(namespace, "one")

    def leased() -> Any:
        answer = operator.ask(
            inside, "POST", "/v1/leases", {"namespace": namespace, "target": "c.example"}
        )
        return answer.json["proxy"] if answer.status == 201 else None

    granted = until("lease after the rotation", leased, within=30)
    assert granted["password"] == NEW
    for page in origin.fetch_both(inside, granted["url"]):
        assert page.status == 200, page
    old = f"http://{USER}:{quote(OLD, safe='')}@{granted['host']}:{granted['port']}"
    for refused in (old, f"http://{granted['host']}:{granted['port']}"):
        assert [page.status for page in origin.fetch_both(inside, refused)] == [407, 407]
    assert len(kube.pods_of(proxy)) == 1


def made(kube: Kube, namespace: str) -> list[str]:
    """Return what there is but the user's own Secret and what every namespace has."""
    names = [
        f"{kind}/{one['metadata']['name']}"
        for kind in OWNED
        for one in kube.items(f"api/v1/namespaces/{namespace}/{kind}")
    ]
    return [name for name in names if name not in {"secrets/login", "configmaps/kube-root-ca.crt"}]

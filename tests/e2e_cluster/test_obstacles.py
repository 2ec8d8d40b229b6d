"""What keeps a squid Pod from starting, and that it starts once that has gone."""

from typing import Any

from tests.e2e_cluster.fleet import a_squid
from tests.e2e_cluster.installation import Installation
from tests.e2e_cluster.kube import RESTRICTED, Kube, conditions_of, until

MISSING_IMAGE = "localhost/nobody-made-this:1"


def test_a_quota_is_shown_and_waited_for(kube: Kube, operator: Installation) -> None:
    with kube.namespace("quota") as namespace:
        quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
        path = f"api/v1/namespaces/{namespace}/resourcequotas"
        kube.create(path, quota)
        until("counted quota", lambda: used_of(kube, path), within=30)
        kube.apply(a_squid(namespace, "one"))

        row = kube.wait_condition(namespace, "one", "Provisioned", "QuotaExceeded")
        assert "ResourceQuota none leaves no room" in row["message"]
        proxy = kube.proxy(namespace, "one")
        assert proxy
        assert kube.pods_of(proxy) == []

        kube.kubectl("delete", "resourcequota", "none", f"--namespace={namespace}")
        kube.wait_ready(namespace, "one")


def used_of(kube: Kube, path: str) -> object:
    return (kube.get(f"{path}/none") or {}).get("status", {}).get("used")


def test_an_image_that_cannot_be_pulled_is_named(kube: Kube, operator: Installation) -> None:
    with kube.namespace("image") as namespace:
        kube.apply(a_squid(namespace, "one", kubernetes={"image": MISSING_IMAGE}))

        def said() -> object:
            row = conditions_of(kube.proxy(namespace, "one")).get("Provisioned", {})
            return row if MISSING_IMAGE in row.get("message", "") else None

        until("image in the condition", said, within=60)
        described = kube.kubectl("describe", "proxy", "one", f"--namespace={namespace}")
        assert f"image {MISSING_IMAGE} cannot be pulled" in described

        # An edit replaces the Pod that never started.
        kube.apply(a_squid(namespace, "one"))
        proxy = kube.wait_ready(namespace, "one", within=90)
        assert len(kube.pods_of(proxy)) == 1


def test_a_namespace_may_come_and_go_with_its_proxy(kube: Kube, operator: Installation) -> None:
    """Its service account comes a moment after it, and before that no Pod is admitted."""
    name = "together"
    namespace = {"apiVersion": "v1", "kind": "Namespace"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "10"}}}
    kube.apply(
        {**namespace, "metadata": {"name": name, "labels": RESTRICTED}},
        {**quota, "metadata": {"name": "some", "namespace": name}},
        a_squid(name, "one"),
    )
    try:
        kube.wait_ready(name, "one")
    finally:
        kube.kubectl("delete", "namespace", name, "--timeout=60s")


def test_a_squid_without_memory_is_named_and_the_words_stay(
    kube: Kube, operator: Installation
) -> None:
    with kube.namespace("memory") as namespace:
        little = {"requests": {"memory": "12Mi"}, "limits": {"memory": "12Mi"}}
        kube.apply(a_squid(namespace, "one", kubernetes={"resources": little}))

        def said() -> Any:
            row = conditions_of(kube.proxy(namespace, "one")).get("Provisioned", {})
            return row if "OOMKilled" in row.get("message", "") else None

        def restarts() -> int:
            proxy = kube.proxy(namespace, "one")
            [pod] = kube.pods_of(proxy) if proxy else []
            count: int = pod["status"]["containerStatuses"][0]["restartCount"]
            return count

        first = until("OOMKilled in the condition", said, within=60)
        before, seen = restarts(), []

        def ended_again() -> bool:
            seen.append(said())
            return restarts() > before + 1

        until("two more ends", ended_again, within=90)
        assert all(row == first for row in seen)

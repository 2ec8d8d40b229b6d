"""The provider gcp in the cluster home: from `apply` to the last instance, on a fake cloud."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.compute import ComputeProcess, nat_ip
from tests.e2e.origin import Origin
from tests.e2e.processes import until
from tests.integration.replicas import ClusterSite, Replica
from tests.integration.test_restarts import metric

SWEEPS = ("--gc-allow-namespaced", "--gc-interval", "500ms", "--gc-min-age", "2s")
DELETED = r'proxy_operator_orphans_deleted_total\{provider="gcp"\}'
SWEPT = r'proxy_operator_sweeps_total\{provider="gcp",result="success"\}'


@pytest.fixture
def compute(tmp_path: Path) -> Iterator[ComputeProcess]:
    made = ComputeProcess(tmp_path)
    try:
        yield made
    finally:
        made.close()


def leader(site: ClusterSite, compute: ComputeProcess, *flags: str) -> Replica:
    """Start an operator with a cluster id of its own, the namespace's name."""
    return site.leader("--cluster-id", site.namespace, *compute.flags, *flags)


def the_proxy(site: ClusterSite) -> dict[str, Any]:
    [found] = site.proxies()
    return found


def is_ready(site: ClusterSite) -> bool:
    return bool(the_proxy(site).get("status", {}).get("phase") == "Ready")


def test_an_instance_comes_serves_a_client_and_goes(
    site: ClusterSite, compute: ComputeProcess, origin: Origin
):
    operator = leader(site, compute).operator
    manifest = json.dumps(compute.manifest("one", origin.http))
    applied = site.cli("apply", "-f", "-", stdin=manifest)
    assert applied.code == 0, applied
    until(lambda: is_ready(site), "a Ready proxy")

    proxy = the_proxy(site)
    [instance] = compute.of(proxy["metadata"]["uid"])
    assert proxy["status"]["ip"] == nat_ip(instance)
    assert [*compute.instances()] == [proxy["status"]["providerID"]]

    lease = until(operator.lease, "a lease")
    page = origin.fetch(origin.http, lease["proxy"]["url"])
    # The way was through the instance.
    assert page["from"] == lease["proxy"]["host"] == nat_ip(instance)

    deleted = site.cli("delete", "proxy", "one")
    assert deleted.code == 0, deleted
    # It waits for the finalizer, which waits for the instance.
    assert (site.proxies(), compute.instances()) == ([], {})
    assert operator.lease() is None


def test_the_sweep_deletes_what_no_proxy_owns_and_leaves_what_is_foreign(
    site: ClusterSite, compute: ComputeProcess, origin: Origin
):
    orphan = compute.plant("00000000-0000-4000-8000-000000000001", site.namespace)
    foreign = compute.plant("00000000-0000-4000-8000-000000000002", "somebody-else")
    replica = leader(site, compute, *SWEEPS)
    site.create(compute.manifest("one", origin.http))
    until(lambda: is_ready(site), "a Ready proxy")
    until(lambda: orphan not in compute.instances(), "the orphan is gone")

    # All are old enough by now, and looked at again.
    swept = metric(replica, SWEPT)
    until(lambda: metric(replica, SWEPT) >= swept + 6, "sweeps after that")
    assert {*compute.instances()} == {foreign, the_proxy(site)["status"]["providerID"]}
    assert {one["status"] for one in compute.instances().values()} == {"RUNNING"}
    assert metric(replica, DELETED) == 1

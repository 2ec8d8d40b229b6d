"""`instances` on a real API server: Pods of every operator, and whose they are."""

from tests.e2e.home import command
from tests.e2e.processes import until
from tests.integration.replicas import ClusterSite, a_managed


def rows(site: ClusterSite, *flags: str) -> list[list[str]]:
    """The lines of the table that are about this namespace."""
    kubeconfig = site.kubeconfig("person-instances", site.plane.url)
    ended = command(site.root, "instances", *flags, "--kubeconfig", str(kubeconfig))
    assert ended.code == 0, ended
    return [line.split() for line in ended.out.splitlines() if f"{site.namespace}/" in line]


def test_pods_of_another_cluster_id_are_foreign(site: ClusterSite):
    operator = site.leader("--cluster-id", "old").operator
    site.create(a_managed("one"))
    until(site.pods, "a Pod")
    site.wait_settled()

    [row] = rows(site, "--cluster-id", "old")
    assert (row[0], row[2]) == ("kubernetes", "Provisioning")
    assert row[5:] == ["old", "yes", f"{site.namespace}/one"]
    assert rows(site, "--cluster-id", "old", "--foreign") == []

    # Without the flag the cluster's own id counts.
    [row] = rows(site, "--foreign")
    assert row[5:] == ["old", "no", f"{site.namespace}/one"]
    assert operator.process.poll() is None

"""A restart over a fleet that is as it should be."""

import re
from typing import Any

from tests.e2e.origin import Origin
from tests.e2e.processes import until
from tests.integration.replicas import ClusterSite, Replica, a_managed, a_rented

EXTERNAL, MANAGED = 100, 20
HEALTH = {"interval": "3s", "timeout": "2s"}


def run_pods(site: ClusterSite) -> None:
    """Say what a node would say of the Pods: they run, here."""
    for pod in site.pods():
        path = f"{site.path('pods', pod['metadata']['name'])}/status"
        site.send("PUT", path, pod | {"status": {"phase": "Running", "podIP": "127.0.0.1"}})


def are_ready(site: ClusterSite) -> bool:
    phases = [proxy.get("status", {}).get("phase") for proxy in site.proxies()]
    return phases == ["Ready"] * (EXTERNAL + MANAGED)


def metric(replica: Replica, pattern: str) -> float:
    """Return the sum of the samples that match."""
    text: Any = replica.operator.ask("GET", "/metrics", server="metrics").body
    return sum(map(float, re.findall(rf"^{pattern} (\S+)$", text, re.MULTILINE)))


def test_a_settled_fleet_is_left_alone(site: ClusterSite, origin: Origin):
    flags = ("--health-url", origin.http)
    first = site.leader(*flags)
    site.create(
        *(a_rented(f"r{n}", origin.port, healthCheck=HEALTH) for n in range(EXTERNAL)),
        *(a_managed(f"m{n}", port=origin.port, healthCheck=HEALTH) for n in range(MANAGED)),
    )
    until(lambda: len(site.pods()) == MANAGED, "Pods", within=30)
    run_pods(site)
    until(lambda: are_ready(site), "a Ready fleet", within=30)
    before = {proxy["metadata"]["name"]: proxy for proxy in site.proxies()}
    assert first.operator.stop() == 0

    second = site.leader(*flags)
    probed = "proxy_operator_healthcheck_duration_seconds_count.*"
    until(
        lambda: metric(second, probed) >= 2 * (EXTERNAL + MANAGED),
        "every proxy probed twice",
        within=30,
    )
    reconciled = metric(second, 'controller_runtime_reconcile_total{controller="proxy".*}')
    assert reconciled >= EXTERNAL + MANAGED
    assert site.writes(second.user) == []
    assert {proxy["metadata"]["name"]: proxy for proxy in site.proxies()} == before
    assert site.writes(second.user, ["events"]) == []

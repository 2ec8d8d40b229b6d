"""What deploy/ grants is what the operator uses: seen in the audit log of an API server."""

import uuid

import pytest
from hack.deploy import workload
from hack.deploy.names import NAME, NAMESPACE, WATCHED
from hack.deploy.rbac import RULES, Scope, operator_rights, rules_in

from proxy_operator.domain.meta import API_GROUP
from tests.cluster.api import Api
from tests.e2e.processes import until
from tests.integration import installation
from tests.integration.installation import CONFIG_MAPS, PODS, PROXIES, SECRETS, World
from tests.integration.rights import AuditTrail, Right, granted

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{NAME}"
BY_ADMISSION_ONLY = Right(API_GROUP, "proxies/finalizers", "update")
"""No request asks for it, so no log shows it: it has a test of its own."""
NOWHERE = "http://127.0.0.1:1/"
"""The target of probes; what stands for the proxy asks nobody."""


@pytest.fixture
def trail(proxy_api):
    trail = AuditTrail(proxy_api.audit_log, installation.USER)
    yield trail
    # Said beside any other failure: it is the likely cause.
    assert trail.refused() == []


@pytest.fixture
def upstream():
    with installation.a_proxy_server() as server:
        yield server


def credentials(password: str) -> dict[str, object]:
    labels = {"crawl.example.com/credentials": "true"}
    data = {"username": "crawler", "password": password}
    return {"metadata": {"name": "login", "labels": labels}, "stringData": data}


def test_the_rights_are_exactly_those_that_the_life_of_proxies_takes(
    proxy_api, trail, upstream, tmp_path
):
    plane, rules = proxy_api, RULES
    plane.api.send("DELETE", LEASE)
    world = World(plane, f"life-{uuid.uuid4().hex[:8]}")
    endpoint = {"host": "127.0.0.1", "port": upstream.server_port}
    with (
        installation.installed(plane, "install.yaml"),
        installation.operator(
            plane, tmp_path, "--gc-interval", "2s", "--health-url", NOWHERE
        ) as process,
    ):
        world.make(SECRETS, credentials("first"))
        world.make_proxy(
            "squid",
            provider="kubernetes",
            port=upstream.server_port,
            credentialsSecretRef={"name": "login"},
        )
        first = world.new_pod()
        world.schedule(first)

        # What happens again within minutes is counted in the Event that there is.
        world.make_proxy("rented", mode="External", endpoint=endpoint)
        for _ in range(2):
            upstream.is_well.set()
            world.wait_for_phase("rented", "Ready")
            upstream.is_well.clear()
            world.wait_for_phase("rented", "Unhealthy")
        upstream.is_well.set()

        # A status that is written upon an older state is refused, and the object read again.
        def has_reread() -> bool:
            name = f"busy-{uuid.uuid4().hex[:8]}"
            world.make_proxy(name, mode="External", endpoint=endpoint)
            for number in range(3):
                note = {"metadata": {"annotations": {"note": str(number)}}}
                world.send("PATCH", f"{PROXIES}/{name}", note)
            return Right(API_GROUP, "proxies", "get") in trail.used(rules)

        until(has_reread, "a conflict", within=15)

        # A Pod that stays without a container: are its files there?
        until(
            lambda: Right("", "secrets", "get") in trail.used(rules),
            "the users file of a Pod is looked for",
            within=40,
            every=0.2,
        )
        world.run(first, "127.0.0.1")
        world.wait_for_phase("squid", "Ready")

        world.send("PATCH", f"{SECRETS}/login", {"stringData": {"password": "second"}})
        until(
            lambda: world.pods()[0]["metadata"].get("deletionTimestamp"),
            "the Pod with the old password goes",
        )
        world.end_pods()
        world.new_pod(other_than=first["metadata"]["uid"])

        world.send("DELETE", PROXIES)
        until(lambda: not world.names(PROXIES), "every Proxy is gone")
        assert world.names(PODS) == []
        assert world.names(CONFIG_MAPS) == []
        assert installation.stop(process) == 0, (tmp_path / "operator.log").read_text()

    assert plane.api.send("GET", LEASE)[1]["spec"]["holderIdentity"] == ""
    assert trail.used(rules) == granted(rules) - {BY_ADMISSION_ONLY}


def test_a_namespaced_operator_lives_within_its_namespace(proxy_api, trail, upstream, tmp_path):
    world = World(proxy_api, WATCHED)
    with (
        installation.installed(proxy_api, "namespaced/install.yaml"),
        installation.operator(
            proxy_api,
            tmp_path,
            *("--watch-namespace", WATCHED, "--cluster-id", WATCHED, "--health-url", NOWHERE),
        ) as process,
    ):
        world.make(SECRETS, credentials("first"))
        world.make_proxy(
            "squid",
            provider="kubernetes",
            port=upstream.server_port,
            credentialsSecretRef={"name": "login"},
        )
        pod = world.new_pod()
        world.schedule(pod)
        world.run(pod, "127.0.0.1")
        world.wait_for_phase("squid", "Ready")

        world.send("DELETE", f"{PROXIES}/squid")
        until(
            lambda: world.pods()[0]["metadata"].get("deletionTimestamp"),
            "the Pod goes before its Proxy",
        )
        world.end_pods()
        until(lambda: not world.names(PROXIES), "the Proxy is gone")
        assert installation.stop(process) == 0, (tmp_path / "operator.log").read_text()

    assert trail.used(RULES) <= granted(rules_in(Scope.OBJECTS, Scope.OWN))
    reached = {event["objectRef"]["namespace"] for event in trail.read()}
    assert reached == {WATCHED, NAMESPACE}


def test_an_owner_that_waits_for_its_pods_takes_the_right_to_its_finalizers(proxy_api, tmp_path):
    world = World(proxy_api, f"owners-{uuid.uuid4().hex[:8]}")
    world.make_proxy("owner", mode="External", endpoint={"host": "127.0.0.1", "port": 9})
    owner = {
        "apiVersion": f"{API_GROUP}/v1alpha1",
        "kind": "Proxy",
        "name": "owner",
        "uid": world.proxy("owner")["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
    owned = {"metadata": {"name": "owned", "ownerReferences": [owner]}}
    [role] = [one for one in operator_rights() if one["kind"] == "ClusterRole"]
    less = [rule for rule in role["rules"] if rule["resources"] != ["proxies/finalizers"]]

    def attempt(user: str, rules: list[object]) -> int:
        name = f"{world.namespace}-{user}"
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        role = {"metadata": {"name": name}, "rules": rules}
        assert proxy_api.api.send("POST", f"{rbac}/clusterroles", role)[0] == 201
        binding = {
            "metadata": {"name": name},
            "roleRef": {"kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "User", "name": user}],
        }
        assert proxy_api.api.send("POST", f"{rbac}/clusterrolebindings", binding)[0] == 201
        asker = Api(proxy_api.certificates.kubeconfig(tmp_path / user, proxy_api.url, user))
        path = f"/api/v1/namespaces/{world.namespace}/configmaps"
        # A binding counts a moment after it was made.
        until(lambda: asker.send("GET", f"{path}/none")[0] == 404, "the binding counts")
        return asker.send("POST", path, owned)[0]

    assert attempt("without", less) == 403
    assert attempt("with", role["rules"]) == 201


def test_the_operator_passes_the_standard_that_its_namespace_enforces(proxy_api):
    pod = workload.deployment()["spec"]["template"]
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All"

    def attempt(spec: dict[str, object]) -> tuple[int, str]:
        document = {"metadata": {"name": "operator"}, "spec": {**pod["spec"], **spec}}
        status, answer = proxy_api.api.send("POST", pods, document)
        return status, answer.get("message", "")

    with installation.installed(proxy_api, "install.yaml"):
        assert attempt({}) == (201, "")
        status, message = attempt({"hostNetwork": True})
        assert status == 403
        assert "restricted" in message

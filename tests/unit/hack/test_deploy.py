"""What is installed in a cluster, as documents."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hack.deploy import files, rbac, workload
from hack.deploy.names import NAMESPACE, WATCHED
from hack.deploy.rbac import RULES, Scope

from proxy_operator import __version__
from proxy_operator.app.given import unknown_variables
from proxy_operator.app.options import options_of
from proxy_operator.app.settings import load_settings

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def kinds(name: str) -> list[str]:
    return [document["kind"] for document in documents(name)]


def flags(arguments: tuple[str, ...]) -> dict[str, str | bool]:
    """Arguments of a Deployment by parameter, as the command line would read them."""
    assert arguments[0] == "run"
    known = {option.flag: option.parameter for option in options_of("run")}
    parted = [argument.partition("=") for argument in arguments[1:]]
    return {known[flag]: value if equals else True for flag, equals, value in parted}


@pytest.mark.parametrize(
    ("whole", "parts"),
    [
        (
            "install.yaml",
            (
                *("namespace.yaml", "crd.yaml", "rbac.yaml", "user-roles.yaml"),
                *("services.yaml", "network-policy.yaml", "operator.yaml"),
            ),
        ),
        (
            "namespaced/install.yaml",
            (
                *("namespace.yaml", "crd.yaml", "namespaced/rbac.yaml", "user-roles.yaml"),
                *("services.yaml", "network-policy.yaml", "namespaced/operator.yaml"),
            ),
        ),
    ],
)
def test_an_install_file_is_its_parts_in_the_order_in_which_they_must_come(whole, parts):
    assert documents(whole) == [one for part in parts for one in documents(part)]
    assert kinds(whole)[:2] == ["Namespace", "CustomResourceDefinition"]
    assert kinds(whole)[-1] == "Deployment"


def test_every_right_is_in_one_role_of_its_scope():
    cluster_role, leader = (
        one["rules"] for one in documents("rbac.yaml") if one["kind"] in {"ClusterRole", "Role"}
    )
    own = [rule.document() for rule in RULES if rule.scope is Scope.OWN]

    assert leader == own
    assert cluster_role == [rule.document() for rule in RULES if rule.scope is not Scope.OWN]
    assert "*" not in str(cluster_role + leader)


def test_a_namespaced_operator_gets_nothing_of_the_cluster():
    rights = documents("namespaced/rbac.yaml")
    roles = {one["metadata"]["namespace"]: one["rules"] for one in rights if one["kind"] == "Role"}

    assert not {"ClusterRole", "ClusterRoleBinding"} & {one["kind"] for one in rights}
    assert roles == {
        WATCHED: [rule.document() for rule in RULES if rule.scope is Scope.OBJECTS],
        NAMESPACE: [rule.document() for rule in RULES if rule.scope is Scope.OWN],
    }


def test_the_page_explains_every_right():
    rows = rbac.rights_table().splitlines()[2:]
    assert len(rows) == len(RULES)
    assert all(rule.why for rule in RULES)


def test_people_get_proxies_by_the_built_in_roles_and_never_their_status():
    view, edit = documents("user-roles.yaml")
    prefix = "rbac.authorization.k8s.io/aggregate-to-"

    def joined(role: dict[str, Any]) -> set[str]:
        labels = role["metadata"]["labels"]
        return {name.removeprefix(prefix) for name in labels if name.startswith(prefix)}

    assert joined(view) == {"view", "edit", "admin"}
    assert joined(edit) == {"edit", "admin"}
    assert {resource for role in (view, edit) for resource in role["rules"][0]["resources"]} == {
        "proxies"
    }


@pytest.mark.parametrize("arguments", [workload.ARGUMENTS, workload.NAMESPACED_ARGUMENTS])
def test_the_arguments_are_options_and_make_good_settings(arguments):
    settings = load_settings(flags(arguments), {})

    assert not settings.standalone
    assert settings.health.url == workload.HEALTH_URL
    bound = (settings.discovery.bind, settings.endpoints.metrics_bind)
    assert [one.port for one in (*bound, settings.endpoints.health_probe_bind)] == [
        port for _, port in (workload.DISCOVERY, workload.METRICS, workload.HEALTH)
    ]


def test_a_namespaced_operator_knows_its_namespace_and_id_without_asking_the_cluster():
    settings = load_settings(flags(workload.NAMESPACED_ARGUMENTS), {})
    assert (settings.watch_namespace, settings.cluster_id) == (WATCHED, WATCHED)
    assert settings.gc.allow_namespaced


def test_the_token_is_read_where_it_is_mounted():
    [container] = workload.deployment()["spec"]["template"]["spec"]["containers"]
    [mount] = container["volumeMounts"]
    settings = load_settings(flags(workload.ARGUMENTS), {})
    assert str(settings.discovery.token_file) == f"{mount['mountPath']}/token"


def test_the_image_is_the_one_that_is_built_of_this_version():
    assert f"localhost/proxy-operator:{__version__}" == workload.IMAGE


def test_no_variable_of_a_service_meets_the_operator():
    pod = workload.deployment()["spec"]["template"]["spec"]
    assert pod["enableServiceLinks"] is False
    # Set by hand or by somebody else's Service, they still are no options of ours.
    assert unknown_variables({"PROXY_OPERATOR_SERVICE_HOST": "10.0.0.1"}) == []


def test_one_operator_at_a_time_which_nobody_has_to_drain():
    spec = workload.deployment()["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert "PodDisruptionBudget" not in kinds("install.yaml")


def test_services_and_probes_name_ports_that_there_are():
    [container] = workload.deployment()["spec"]["template"]["spec"]["containers"]
    ports = {port["name"] for port in container["ports"]}
    probes = [container[f"{name}Probe"] for name in ("startup", "liveness", "readiness")]

    assert {one["spec"]["ports"][0]["targetPort"] for one in workload.services()} <= ports
    assert {probe["httpGet"]["port"] for probe in probes} <= ports
    allowed = workload.network_policy()["spec"]["ingress"]
    assert {rule["ports"][0]["port"] for rule in allowed} == ports


def test_words_stand_above_what_people_edit():
    lines = (DEPLOY / "namespaced/install.yaml").read_text().splitlines()
    for start in ("image: localhost/", "- --health-url", "- --watch-namespace", "- --cluster-id"):
        [place] = [n for n, line in enumerate(lines) if line.strip().startswith(start)]
        assert lines[place - 1].strip().startswith("# ")


def test_words_for_a_line_that_is_not_there_are_an_error():
    with pytest.raises(ValueError, match="0 lines start with 'nothing:'"):
        files._file([{"kind": "Pod"}], {"nothing:": "words"})

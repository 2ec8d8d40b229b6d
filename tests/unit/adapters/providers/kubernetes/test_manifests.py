"""The Pod as the API server will get it. That it starts is tested on a real cluster."""

import json
from typing import Any

import pytest

from proxy_operator.adapters.providers.kubernetes import manifests
from proxy_operator.adapters.providers.kubernetes.manifests import PodSettings
from proxy_operator.domain.proxy import KubernetesBlock, Resources, Scheme, Toleration
from proxy_operator.domain.secret import Credentials
from proxy_operator.provisioning.contract import CreateRequest
from proxy_operator.provisioning.errors import PermanentProviderError
from tests.builders import a_create_request, a_proxy

SETTINGS = PodSettings(image="registry.example/squid:1")
CREDENTIALS = Credentials("crawler", "s3cret-word")


def a_request(credentials: Credentials | None = None, **spec: Any) -> CreateRequest:
    return a_create_request(a_proxy(provider="kubernetes", **spec), credentials=credentials)


def pod_of(request: CreateRequest) -> dict[str, Any]:
    return manifests.pod(request, SETTINGS)


def container_of(request: CreateRequest) -> dict[str, Any]:
    container: dict[str, Any] = pod_of(request)["spec"]["containers"][0]
    return container


def test_the_pod_is_named_labelled_and_owned_as_its_proxy_says() -> None:
    request = a_request()
    meta = pod_of(request)["metadata"]
    assert (meta["name"], meta["namespace"]) == (request.name, "default")
    assert request.labels.items() <= meta["labels"].items()
    assert meta["ownerReferences"] == [
        {
            "apiVersion": "crawl.example.com/v1alpha1",
            "kind": "Proxy",
            "name": request.proxy_name,
            "uid": request.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_the_pod_keeps_the_restricted_standard() -> None:
    spec = pod_of(a_request(CREDENTIALS))["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] != 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert "sysctls" not in spec["securityContext"]
    assert spec["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    kinds = {key for volume in spec["volumes"] for key in volume if key != "name"}
    assert kinds == {"configMap", "secret", "emptyDir"}


def test_the_pod_knows_nothing_of_the_cluster() -> None:
    spec = pod_of(a_request())["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False


def test_what_is_written_to_is_bounded() -> None:
    volumes = pod_of(a_request())["spec"]["volumes"]
    scratch = [volume["emptyDir"] for volume in volumes if "emptyDir" in volume]
    assert len(scratch) == 3
    assert all(one["sizeLimit"] for one in scratch)


def test_squid_is_done_before_the_grace_period_ends() -> None:
    request = a_request()
    grace = pod_of(request)["spec"]["terminationGracePeriodSeconds"]
    text = manifests.config_map(request, SETTINGS)["data"]["squid.conf"]
    line = next(one for one in text.splitlines() if one.startswith("shutdown_lifetime"))
    assert int(line.split()[1]) + 5 <= grace


def test_the_block_of_the_spec_shapes_the_pod() -> None:
    block = KubernetesBlock(
        image="other:2",
        resources=Resources(limits={"memory": "1Gi", "cpu": 2}),
        node_selector={"pool": "crawl"},
        tolerations=(Toleration(key="crawl", operator="Exists", toleration_seconds=3),),
    )
    request = a_request(kubernetes=block)
    spec, container = pod_of(request)["spec"], container_of(request)
    assert container["image"] == "other:2"
    assert container["resources"] == {"limits": {"memory": "1Gi", "cpu": 2}}
    assert spec["nodeSelector"] == {"pool": "crawl"}
    assert spec["tolerations"] == [{"key": "crawl", "operator": "Exists", "tolerationSeconds": 3}]


def test_without_a_block_the_operators_image_and_modest_resources() -> None:
    container = container_of(a_request())
    assert container["image"] == SETTINGS.image
    assert set(container["resources"]) == {"requests", "limits"}


@pytest.mark.parametrize(("port", "listens"), [(None, 3128), (8080, 8080), (80, 80)])
def test_the_port(port: int | None, listens: int) -> None:
    request = a_request(port=port)
    pod = pod_of(request)
    assert manifests.port_of(pod) == listens
    text = manifests.config_map(request, SETTINGS)["data"]["squid.conf"]
    assert f"http_port {listens}\n" in text
    has_sysctl = "sysctls" in pod["spec"]["securityContext"]
    assert has_sysctl is (listens < 1024)


def test_the_pod_reads_the_config_map_made_for_it() -> None:
    request = a_request(CREDENTIALS)
    config = manifests.config_map(request, SETTINGS)
    assert manifests.config_map_of(pod_of(request)) == config["metadata"]["name"]
    assert config["immutable"] is True
    mounts = {one["name"]: one["mountPath"] for one in container_of(request)["volumeMounts"]}
    assert f" {mounts['users']}/users\n" in config["data"]["squid.conf"]


def test_a_config_map_is_named_after_its_content() -> None:
    request = a_request()
    name = manifests.config_map(request, SETTINGS)["metadata"]["name"]
    assert manifests.config_map(request, SETTINGS)["metadata"]["name"] == name
    with_users = a_create_request(
        a_proxy(provider="kubernetes", meta={"uid": request.uid}), credentials=CREDENTIALS
    )
    other = manifests.config_map(with_users, SETTINGS)["metadata"]["name"]
    assert other != name
    assert other.startswith(request.name)


def test_every_create_has_a_secret_of_its_own() -> None:
    names = {
        manifests.secret_of(pod_of(a_create_request(credentials=CREDENTIALS, request_id=one)))
        for one in ("a", "b")
    }
    assert len(names) == 2
    assert manifests.secret_of(pod_of(a_request())) is None


def test_the_secret_goes_with_its_pod() -> None:
    request = a_request(CREDENTIALS)
    pod = pod_of(request)
    pod["metadata"]["uid"] = "pod-uid"
    secret = manifests.users_secret(pod, "s", "crawler:$6$x$y\n")
    assert secret["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": request.name, "uid": "pod-uid"}
    ]
    assert request.labels.items() <= secret["metadata"]["labels"].items()


def test_neither_pod_nor_config_map_knows_the_credentials() -> None:
    request = a_request(CREDENTIALS)
    text = json.dumps([pod_of(request), manifests.config_map(request, SETTINGS)])
    assert CREDENTIALS.password not in text
    assert CREDENTIALS.username not in text


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (a_request(scheme=Scheme.HTTPS), "spec.scheme"),
        (a_create_request(user_data=b"#cloud-config"), "spec.cloudInit"),
        (a_request(Credentials("#x", "y")), "spec.credentialsSecretRef"),
    ],
)
def test_what_a_squid_pod_cannot_be_is_said(request_: CreateRequest, says: str) -> None:
    with pytest.raises(PermanentProviderError, match=says):
        manifests.check(request_)


def test_a_provider_id_says_where_the_pod_is() -> None:
    name = a_request().name
    assert manifests.parse_provider_id(manifests.provider_id_of("ns-1", name)) == ("ns-1", name)


@pytest.mark.parametrize(
    "text", ["", "local/x", "ns", "a/b/proxy-abcdefghijklmnop", "ns/nginx", "../x"]
)
def test_what_is_no_provider_id_of_ours(text: str) -> None:
    assert manifests.parse_provider_id(text) is None

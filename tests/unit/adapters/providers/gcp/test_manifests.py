"""What an insert asks for, and what it is refused for before it is sent."""

import msgspec
import pytest

from proxy_operator.adapters.providers.gcp import manifests
from proxy_operator.domain.proxy import GcpBlock, ProxySpec
from proxy_operator.provisioning.errors import PermanentProviderError
from tests.unit.adapters.providers.gcp.scripted import ZONE, a_gcp_proxy, a_request


def test_the_plainest_instance():
    request = a_request()
    assert manifests.instance(request) == {
        "name": request.name,
        "description": "Proxy default/p1",
        "machineType": f"zones/{ZONE}/machineTypes/e2-micro",
        "labels": {**request.labels, "proxy-operator-port": "3128"},
        "disks": [
            {
                "boot": True,
                "autoDelete": True,
                "initializeParams": {"sourceImage": "projects/i/global/images/x"},
            }
        ],
        "networkInterfaces": [
            {
                "network": "global/networks/default",
                "accessConfigs": [{"name": "External NAT", "type": "ONE_TO_ONE_NAT"}],
            }
        ],
    }


def test_everything_that_can_be_asked_for():
    request = a_request(
        block={
            "disk_size_gb": 20,
            "network": "crawl",
            "subnetwork": "crawl-eu",
            "spot": True,
            "network_tags": ("proxy", "eu"),
            "service_account": "sa@p.iam.gserviceaccount.com",
        },
        user_data="#cloud-config\nü".encode(),
    )
    body = manifests.instance(request)
    assert body["disks"][0]["initializeParams"]["diskSizeGb"] == "20"
    assert body["networkInterfaces"][0]["network"] == "global/networks/crawl"
    assert body["networkInterfaces"][0]["subnetwork"] == "regions/europe-west4/subnetworks/crawl-eu"
    assert body["scheduling"]["provisioningModel"] == "SPOT"
    assert body["scheduling"]["instanceTerminationAction"] == "DELETE"
    assert body["scheduling"]["automaticRestart"] is False
    assert body["tags"] == {"items": ["proxy", "eu"]}
    assert body["metadata"] == {"items": [{"key": "user-data", "value": "#cloud-config\nü"}]}
    assert body["serviceAccounts"][0]["email"] == "sa@p.iam.gserviceaccount.com"


def test_paths_stay_as_they_are_and_a_subnetwork_names_its_network():
    path = "projects/host/regions/r/subnetworks/s"
    interface = manifests.instance(a_request(block={"subnetwork": path}))["networkInterfaces"][0]
    assert interface["subnetwork"] == path
    assert "network" not in interface


def test_the_machine_type_is_of_the_zone_that_is_tried():
    body = manifests.instance(a_request(zone="us-east1-b"))
    assert body["machineType"] == "zones/us-east1-b/machineTypes/e2-micro"


@pytest.mark.parametrize(
    ("field", "named"),
    [("zone", "zone"), ("machine_type", "machineType"), ("image", "image")],
)
def test_a_missing_field_is_named(field, named):
    with pytest.raises(PermanentProviderError, match=f"spec.gcp.{named} is missing"):
        manifests.check(a_request(block={field: None}))


def test_a_missing_block_is_named():
    proxy = a_gcp_proxy()
    proxy.spec = msgspec.structs.replace(proxy.spec, gcp=None)
    with pytest.raises(PermanentProviderError, match=r"spec\.gcp\.zone"):
        manifests.check(a_request(proxy=proxy, zone=""))


@pytest.mark.parametrize("value", ["Upper", "a" * 64, "a.b", "a/b"])
def test_a_label_that_the_api_would_refuse_is_said_before(value):
    request = a_request()
    labels = {**request.labels, "proxy-operator-cluster": value}
    with pytest.raises(PermanentProviderError, match="proxy-operator-cluster"):
        manifests.check(msgspec.structs.replace(request, labels=labels))


def test_attributes_are_in_no_label():
    proxy = a_gcp_proxy()
    proxy.spec = msgspec.structs.replace(proxy.spec, attributes={"Region": "EU West"})
    assert "EU West" not in repr(manifests.instance(a_request(proxy=proxy)))


@pytest.mark.parametrize("data", [b"\xff\xfe", b"x" * (256 * 1024 + 1)])
def test_user_data_that_no_instance_can_have_is_permanent(data):
    with pytest.raises(PermanentProviderError, match=r"spec\.cloudInit"):
        manifests.check(a_request(user_data=data))


@pytest.mark.parametrize("text", ["", "request-1", "00000000-0000-0000-0000-000000000000"])
def test_a_request_id_must_be_a_uuid(text):
    with pytest.raises(PermanentProviderError, match="UUID"):
        manifests.request_id_of(a_request(request_id=text))


def test_credentials_are_not_in_the_body():
    from proxy_operator.domain.secret import Credentials  # noqa: PLC0415

    body = manifests.instance(a_request(credentials=Credentials("crawler", "hunter2")))
    assert "hunter2" not in repr(body)


@pytest.mark.parametrize(
    ("block", "zones"),
    [
        (None, ("",)),
        (GcpBlock(), ("",)),
        (GcpBlock(zone="a"), ("a",)),
        (GcpBlock(zone="a", fallback_zones=("b", "a", "c", "b")), ("a", "b", "c")),
    ],
)
def test_placements(block, zones):
    assert manifests.placements(ProxySpec(gcp=block)) == zones


def test_ids_are_read_back():
    assert manifests.parse_provider_id("zones/a-b/instances/proxy-x") == ("a-b", "proxy-x")
    for bad in ("zones//instances/x", "instances/x", "zones/a/instances/../x", "zones/a/b/c"):
        assert manifests.parse_provider_id(bad) is None

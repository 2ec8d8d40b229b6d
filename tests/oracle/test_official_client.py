"""The vendor's own clients, unchanged, against the fake: what they cannot read is wrong in it.

Run by `make test-oracle`, whose environment has them.
"""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import InvalidOperation
from google.cloud import compute_v1

from proxy_operator.runtime.clock import SystemClock
from tests.fakes.compute import excerpt, strangers
from tests.fakes.compute.conduct import ZONES, Conduct, Timing
from tests.fakes.compute.faults import FailOperation, LoseReply, Refuse
from tests.fakes.compute.refusals import quota_exceeded, rate_limited
from tests.fakes.compute.server import Server, serving
from tests.fakes.compute.service import Service
from tests.fakes.compute.strangers import PROJECT
from tests.fakes.compute.tokens import Tokens
from tests.fakes.compute.world import World

ZONE = ZONES[0]
SOON = timedelta(seconds=0.2)
NONE = timedelta(0)

# In a process of its own: the library reads its environment when it is imported.
DEFAULT_CREDENTIALS = """
import sys
import google.auth
from google.api_core.client_options import ClientOptions
from google.auth.transport.requests import Request
from google.cloud import compute_v1

credentials, project = google.auth.default()
credentials.refresh(Request())
client = compute_v1.InstancesClient(
    credentials=credentials, client_options=ClientOptions(api_endpoint=sys.argv[1])
)
scopes = list(client.aggregated_list(project=sys.argv[2]))
print(credentials.token, project, len(scopes))
"""


class Cloud(NamedTuple):
    """A fake that is served, and its official client."""

    world: World
    tokens: Tokens
    address: str
    instances: compute_v1.InstancesClient
    operations: compute_v1.ZoneOperationsClient


async def serve(server: Server, address: "Future[str]", end: "Future[asyncio.Event]") -> None:
    until = asyncio.Event()
    async with serving(server, "127.0.0.1", 0) as where:
        end.set_result(until)
        address.set_result(where)
        await until.wait()


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """The client blocks, so the fake is served by another thread; tests touch it between calls."""
    clock = SystemClock()
    timing = Timing(appears=NONE, stages=NONE, runs=SOON, stop=SOON, fails=SOON)
    world = World(clock, Conduct(timing=timing))
    tokens = Tokens(clock)
    server = Server(Service(world, tokens, allows_version_header=True), clock)
    loop = asyncio.new_event_loop()
    address: Future[str] = Future()
    end: Future[asyncio.Event] = Future()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(server, address, end),))
    thread.start()
    options = ClientOptions(api_endpoint=address.result(10))
    nobody = AnonymousCredentials()
    instances = compute_v1.InstancesClient(credentials=nobody, client_options=options)
    operations = compute_v1.ZoneOperationsClient(credentials=nobody, client_options=options)
    yield Cloud(world, tokens, address.result(), instances, operations)
    instances.transport.close()
    operations.transport.close()
    loop.call_soon_threadsafe(end.result().set)
    thread.join(10)
    loop.close()


def an_instance(name: str, **fields: Any) -> compute_v1.Instance:
    return compute_v1.Instance(
        name=name,
        machine_type=f"zones/{ZONE}/machineTypes/e2-micro",
        labels={"proxy-operator-uid": "u-1"},
        disks=[
            compute_v1.AttachedDisk(
                boot=True,
                auto_delete=True,
                initialize_params=compute_v1.AttachedDiskInitializeParams(
                    source_image="projects/debian-cloud/global/images/family/debian-12",
                    disk_size_gb=20,
                ),
            )
        ],
        network_interfaces=[
            compute_v1.NetworkInterface(
                access_configs=[
                    compute_v1.AccessConfig(name="external-nat", type_="ONE_TO_ONE_NAT")
                ]
            )
        ],
        **fields,
    )


def insert(cloud: Cloud, name: str, request_id: str = "", **fields: Any) -> Any:
    request = compute_v1.InsertInstanceRequest(
        project=PROJECT, zone=ZONE, instance_resource=an_instance(name, **fields)
    )
    if request_id:
        request.request_id = request_id
    return cloud.instances.insert_unary(request)


def ended(cloud: Cloud, operation: compute_v1.Operation) -> compute_v1.Operation:
    """Wait for an operation. The futures of the client ask an address that cannot be set."""
    status = compute_v1.Operation.Status
    for _ in range(100):
        if operation.status == status.DONE:
            return operation
        time.sleep(0.1)  # noqa: TID251 - the client has no loop
        operation = cloud.operations.get(project=PROJECT, zone=ZONE, operation=operation.name)
    raise AssertionError(f"{operation.name} never ended")


def test_an_instance_is_made_read_and_deleted(cloud):
    scheduling = compute_v1.Scheduling(
        provisioning_model="SPOT",
        instance_termination_action="DELETE",
        automatic_restart=False,
        on_host_maintenance="TERMINATE",
    )
    items = [compute_v1.Items(key="user-data", value="#cloud-config\n")]
    metadata = compute_v1.Metadata(items=items)
    made = insert(cloud, "proxy-a", scheduling=scheduling, metadata=metadata)
    assert ended(cloud, made).operation_type == "insert"
    seen = cloud.instances.get(project=PROJECT, zone=ZONE, instance="proxy-a")
    assert (seen.status, seen.labels) == ("RUNNING", {"proxy-operator-uid": "u-1"})
    assert seen.network_interfaces[0].access_configs[0].nat_i_p == "198.18.0.2"
    assert seen.scheduling.provisioning_model == "SPOT"
    assert seen.metadata.items[0].value == "#cloud-config\n"
    name = {"project": PROJECT, "zone": ZONE, "instance": "proxy-a"}
    assert ended(cloud, cloud.instances.delete_unary(**name)).operation_type == "delete"
    with pytest.raises(exceptions.NotFound):
        cloud.instances.get(**name)
    assert cloud.world.ledger.violations == []


def test_a_replay_is_the_same_operation(cloud):
    request_id = "0d6cb1b5-5f3c-4a68-9d3f-0f7b8b0f3d11"
    cloud.world.faults.add(LoseReply(), "insert", times=1)
    with pytest.raises(Exception, match=r"(?i)disconnected|aborted"):
        insert(cloud, "proxy-a", request_id)
    assert not ended(cloud, insert(cloud, "proxy-a", request_id)).error.errors
    assert len(cloud.world.ledger.lives) == 1
    with pytest.raises(exceptions.Conflict):
        insert(cloud, "proxy-a")


def test_lists_are_paged_filtered_and_honest(cloud):
    for number in range(7):
        zone = ZONES[number % 3]
        strangers.make(cloud.world, zone, f"proxy-{number}", {"odd": str(number % 2)})
    request = compute_v1.AggregatedListInstancesRequest(
        project=PROJECT, filter='labels.odd="1"', max_results=2
    )
    found = {
        zone: list(scope.instances) for zone, scope in cloud.instances.aggregated_list(request)
    }
    names = [one.name for page in found.values() for one in page]
    assert set(found) == {f"zones/{zone}" for zone in ZONES}
    assert len(names) <= 3
    pages = list(cloud.instances.aggregated_list(request).pages)
    shown = [one.name for page in pages for scope in page.items.values() for one in scope.instances]
    assert sorted(shown) == ["proxy-1", "proxy-3", "proxy-5"]
    assert pages[0].items[f"zones/{ZONES[2]}"].warning.code == "NO_RESULTS_ON_PAGE"


def test_an_operation_tells_its_error(cloud):
    cloud.world.faults.add(FailOperation("ZONE_RESOURCE_POOL_EXHAUSTED", SOON))
    done = ended(cloud, insert(cloud, "proxy-a"))
    assert done.error.errors[0].code == "ZONE_RESOURCE_POOL_EXHAUSTED"
    assert done.http_error_status_code == 503


@pytest.mark.parametrize("error", [quota_exceeded(), rate_limited()])
def test_refusals_are_read_as_such(cloud, error):
    cloud.world.faults.add(Refuse(error), "insert")
    with pytest.raises(exceptions.Forbidden) as caught:
        insert(cloud, "proxy-a")
    assert caught.value.errors[0]["reason"] == error.reason
    assert caught.value.reason == error.error_info


def test_credentials_are_found_and_used(cloud, monkeypatch, tmp_path):
    host = cloud.address.removeprefix("http://")
    for name in ("GCE_METADATA_HOST", "GCE_METADATA_IP"):
        monkeypatch.setenv(name, host)
    monkeypatch.setenv("HOME", str(tmp_path))  # no credentials of whoever runs this
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    cloud.tokens.is_required = True
    command = [sys.executable, "-c", DEFAULT_CREDENTIALS, cloud.address, PROJECT]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.split() == ["fake-token-1", PROJECT, str(len(ZONES))], done.stderr
    with pytest.raises(InvalidOperation, match="cannot be refreshed"):  # what it does on a 401
        cloud.instances.get(project=PROJECT, zone=ZONE, instance="proxy-a")


def test_the_description_is_the_vendors_own():
    assert excerpt.PATH.read_text() == excerpt.render(excerpt.whole_document())

"""Over HTTP: the same answers, connections that break, tokens, and instances that are proxies."""

import asyncio
import socket
import sys
from datetime import timedelta

import aiohttp
import pytest

from proxy_operator.runtime.clock import SystemClock
from tests.e2e.origin import Origin
from tests.fakes.compute import strangers
from tests.fakes.compute.__main__ import arguments, conduct_of, faults_of
from tests.fakes.compute.conduct import Conduct
from tests.fakes.compute.faults import LoseReply, LoseRequest
from tests.fakes.compute.proxies import ROOT, Proxies, port_of
from tests.fakes.compute.server import Server, serving
from tests.fakes.compute.service import Service
from tests.fakes.compute.strangers import PROJECT, a_body
from tests.fakes.compute.tokens import Tokens
from tests.fakes.compute.world import World
from tests.unit.fakes.compute.builders import ZONE

PATH = f"/compute/v1/projects/{PROJECT}/zones/{ZONE}/instances"
FLAVOR = {"Metadata-Flavor": "Google"}


@pytest.fixture
def world():
    return World(SystemClock())


@pytest.fixture
async def client(world):
    clock = SystemClock()
    service = Service(world, Tokens(clock, is_required=True))
    async with (
        serving(Server(service, clock), "127.0.0.1", 0) as address,
        aiohttp.ClientSession(address) as session,
    ):
        account = "/computeMetadata/v1/instance/service-accounts/default"
        async with session.get(f"{account}/token") as answer:
            token = (await answer.json())["access_token"]
        session.headers["Authorization"] = f"Bearer {token}"
        yield session


async def test_answers_are_those_of_the_service(world, client):
    world.conduct.timing.appears = timedelta(0)
    async with client.post(PATH, json=a_body(ZONE, "proxy-a")) as answer:
        assert (await answer.json())["kind"] == "compute#operation"
    async with client.get(f"{PATH}/proxy-a", params={"prettyPrint": "false"}) as answer:
        assert (await answer.json())["status"] == "PROVISIONING"
        assert answer.content_type == "application/json"
    async with client.get(PATH) as answer:
        assert answer.status == 404
    async with client.get(f"{PATH}/proxy-a", headers={"Authorization": "Bearer no"}) as answer:
        assert answer.status == 401


async def test_a_lost_answer_is_a_closed_connection(world, client):
    world.faults.add(LoseReply(), "insert", times=1)
    world.faults.add(LoseRequest(), "delete")  # the client repeats those by itself
    strangers.make(world, ZONE, "proxy-b")
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await client.post(PATH, json=a_body(ZONE, "proxy-a"))
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await client.delete(f"{PATH}/proxy-b")
    assert [one.name for one in world.ledger.inserts] == ["proxy-a"]
    assert world.ledger.deletes == []


async def test_tokens_fail_when_told_to(world):
    tokens = Tokens(SystemClock(), failures=1, failure_status=400)
    server = Server(Service(world, tokens), SystemClock())
    async with (
        serving(server, "127.0.0.1", 0) as address,
        aiohttp.ClientSession(address) as session,
    ):
        async with session.post("/token") as answer:
            assert (answer.status, (await answer.json())["error"]) == (400, "invalid_grant")
        async with session.post("/token") as answer:
            assert (await answer.json())["token_type"] == "Bearer"
        async with session.get("/computeMetadata/v1/project/project-id") as answer:
            assert (await answer.text(), answer.headers["Metadata-Flavor"]) == (PROJECT, "Google")


async def a_page(proxy: str, url: str) -> dict[str, object]:
    """Fetch through a proxy that is about to listen."""
    for _ in range(100):
        try:
            async with aiohttp.ClientSession() as session, session.get(url, proxy=proxy) as answer:
                page: dict[str, object] = await answer.json(content_type=None)
                return page
        except aiohttp.ClientConnectionError:
            await asyncio.sleep(0.1)
    raise AssertionError(f"{proxy} never answered")


async def test_a_running_instance_is_a_proxy_and_a_deleted_one_is_none():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    world = World(SystemClock(), Conduct(ip_prefix="127.77"))
    world.conduct.timing.stop = timedelta(0)
    origin = Origin()
    try:
        async with asyncio.TaskGroup() as group:
            following = group.create_task(Proxies(world, port).run())
            machine = strangers.make(world, ZONE, "proxy-a")
            world.now()
            host = machine.nat_ip
            assert host is not None
            page = await a_page(f"http://{host}:{port}", f"{origin.http}?n=1")
            assert (page["path"], page["from"]) == ("/page?n=1", host)
            strangers.delete(world, machine)
            for _ in range(100):
                with socket.socket() as trial:
                    if trial.connect_ex((host, port)) != 0:
                        break
                await asyncio.sleep(0.1)
            else:
                pytest.fail("the proxy of a deleted instance still listens")
            following.cancel()
    finally:
        origin.close()


def test_a_label_or_user_data_names_the_port():
    body = a_body(ZONE, "proxy-a")
    world = World(SystemClock())
    user_data = "#cloud-config\nwrite_files:\n- content: |\n    http_port 8888\n"
    body["metadata"] = {"items": [{"key": "user-data", "value": user_data}]}
    machine = world.add(PROJECT, ZONE, body, "stranger", 0.0)
    assert port_of(machine, 3128) == 8888
    assert port_of(strangers.make(world, ZONE, "proxy-b"), 3128) == 3128
    body |= {"name": "proxy-c", "labels": {"proxy-operator-port": "8889"}}
    assert port_of(world.add(PROJECT, ZONE, body, "stranger", 0.0), 3128) == 8889


def test_switches_make_the_cloud():
    text = "--zone a-b1-c=2 --zone a-b1-d --quota 3 --proxies --boot 0.5 --unreachable a-b1-d"
    conduct = conduct_of(arguments().parse_args(text.split()))
    assert conduct.zones == {"a-b1-c": 2, "a-b1-d": None}
    assert (conduct.quota, conduct.ip_prefix, conduct.unreachable) == (3, "127.77", {"a-b1-d"})
    assert conduct.timing.appears == conduct.timing.runs == timedelta(seconds=0.5)
    text = "--refuse rate --refuse-share 0.5 --lose-replies 0.1 --delay 2 --operation-error X"
    assert len(faults_of(arguments().parse_args(text.split())).rules) == 4


async def test_by_hand():
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.fakes.compute", "--port", "0"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        said = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
        address = said.split("--gcp-endpoint ")[1].split()[0]
        url = f"{address}/compute/v1/projects/{PROJECT}/aggregated/instances"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert (await answer.json())["kind"] == "compute#instanceAggregatedList"
    finally:
        process.terminate()
        await process.wait()

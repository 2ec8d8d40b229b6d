"""Runs every example of docs/api.md, in order, against the API on a loopback port.

The page's curl commands are replayed by a client of our own, so the test needs no curl.
"""

import json
import re
import shlex
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from proxy_operator.adapters.web.errors import STATUS
from proxy_operator.adapters.web.routes import ROUTES
from proxy_operator.adapters.web.server import HttpServer
from proxy_operator.domain.secret import Credentials
from tests.unit.adapters.web.harness import TOKEN, Api, Reply, connected, serving
from tests.unit.discovery.fleet import Fleet, a_leasable

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
VARYING = {"retry-after"}


class Example(NamedTuple):
    command: str
    status: int
    headers: dict[str, str]
    body: Any


def examples() -> list[Example]:
    found = []
    for block in re.findall(r"```console\n\$ (.*?)```", PAGE, re.DOTALL):
        head, _, body = block.strip().partition("\n\n")
        command, status, *headers = head.split("\n")
        found.append(
            Example(
                command,
                int(status.split()[1]),
                dict(line.split(": ", 1) for line in headers),
                json.loads(body) if body else None,
            )
        )
    return found


async def run(command: str, server: HttpServer, lease: str) -> tuple[str, str, Reply]:
    """Do what curl would: only the options that the page uses are understood."""
    values = {"$API": "", "$DISCOVERY_TOKEN": TOKEN, "$LEASE_ID": lease}
    for name, value in values.items():
        command = command.replace(name, value)
    program, *words = shlex.split(command)
    assert program == "curl"
    method, target, body, headers = "", "", b"", ["Host: 127.0.0.1"]
    options = iter(words)
    for word in options:
        match word:
            case "-si":
                pass
            case "-X":
                method = next(options)
            case "-H":
                headers.append(next(options))
            case "-d":
                body = next(options).encode()
                headers.append("Content-Type: application/x-www-form-urlencoded")
                headers.append(f"Content-Length: {len(body)}")
            case _:
                assert word.startswith("/"), f"an option the test does not know: {word}"
                target = word
    method = method or ("POST" if body else "GET")
    head = "\r\n".join([f"{method} {target} HTTP/1.1", *headers, "", ""])
    async with connected(server) as client:
        return method, target.partition("?")[0], await client.ask(head.encode() + body)


def shape(value: Any) -> Any:
    """What a reader relies on: names in order, types, and the codes of errors."""
    if isinstance(value, dict):
        return [(k, v if k in ("error", "message") else shape(v)) for k, v in value.items()]
    if isinstance(value, list):
        return [shape(item) for item in value]
    return type(value).__name__


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    eu = {"region": "eu", "asn": "3320"}
    fleet = Fleet().add(
        a_leasable("eu-1", attributes=eu, max_leases=10, latency_millis=84),
        a_leasable("eu-2", attributes=eu, max_leases=10, latency_millis=90, host="2001:db8::1"),
        a_leasable("us-1", attributes={"region": "us"}, max_leases=1),
        a_leasable("us-2", attributes={"region": "us"}, healthy=False),
    )
    fleet.secrets.by_name["eu-1"] = Credentials("crawler", "p@ss/w0rd")
    fleet.leases.acquire(
        selector={"region": "us"}, namespace=None, target="", ttl=timedelta(minutes=10)
    )
    async with serving(Api(fleet).endpoint) as running:
        yield running


async def test_every_example_is_true(server):
    lease = ""
    asked = set()
    for example in examples():
        method, path, reply = await run(example.command, server, lease)
        where = example.command
        assert reply.status == example.status, where
        for name, value in example.headers.items():
            if name in VARYING:
                assert name in reply.headers, where
            else:
                assert reply.headers[name] == value.lower(), where
        if example.body is None:
            assert reply.body == b"", where
            asked.add((method, path.replace(lease, "{id}") if lease else path))
            continue
        body = reply.json
        if path == "/v1/leases" and method == "GET":
            body["leases"] = [row for row in body["leases"] if row["leaseID"] == lease]
        assert shape(body) == shape(example.body), where
        if reply.status == 201:
            lease = body["leaseID"]
            for field in ("url", "username", "password", "host", "name"):
                assert body["proxy"][field] == example.body["proxy"][field]
        asked.add((method, path.replace(lease, "{id}") if lease else path))
    assert asked >= {(route.method, route.path) for route in ROUTES if route.summary}


def test_every_error_is_on_the_page():
    rows = set(re.findall(r"^\| (\d{3}) \| `(\w+)` \|", PAGE, re.MULTILINE))
    assert rows == {(str(status), code.value) for code, status in STATUS.items()}

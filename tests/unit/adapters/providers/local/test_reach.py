"""What a local proxy connects to, as a table."""

from pathlib import Path

import pytest

from proxy_operator.adapters.providers.local.reach import (
    Destination,
    Reach,
    is_reachable,
    path_for,
    plain_address,
    read_reach,
    write_reach,
)
from proxy_operator.provisioning.targets import parse_allowed_target

API, METRICS, HEALTH, OTHER = 8090, 8080, 8081, 9000
REACH = Reach((API, METRICS), HEALTH)
EVERYWHERE = ("127.0.0.0/8", "0.0.0.0/0", "::/0")


def is_here(address: str) -> bool:
    return address in {"127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::", "10.0.0.5", "fe80::5"}


def decide(address: str, port: int, *allowed: str, is_local_proxy: bool) -> bool:
    reach = REACH._replace(allowed=tuple(map(parse_allowed_target, allowed)))
    target = Destination("asked.example", plain_address(address), port, is_here(address))
    return is_reachable(target, reach, is_local_proxy=is_local_proxy)


@pytest.mark.parametrize(
    ("address", "port", "from_here", "from_elsewhere"),
    [
        # The operator's API is no target, by whatever address of the machine.
        ("127.0.0.1", API, False, False),
        ("127.9.9.9", METRICS, False, False),
        ("::1", API, False, False),
        ("0.0.0.0", API, False, False),
        ("10.0.0.5", API, False, False),
        # On other machines these are ports like all others.
        ("203.0.113.9", API, True, True),
        # What proxies are probed against.
        ("127.0.0.1", HEALTH, True, True),
        ("10.0.0.5", HEALTH, True, True),
        # This machine: for clients that are on it anyway.
        ("127.0.0.1", OTHER, True, False),
        ("127.9.9.9", OTHER, True, False),
        ("::1", OTHER, True, False),
        ("0.0.0.0", OTHER, True, False),
        ("::", OTHER, True, False),
        ("10.0.0.5", OTHER, True, False),
        ("fe80::5", OTHER, True, False),
        # The neighbours on the link, and what clouds tell a machine about itself.
        ("169.254.169.254", 80, False, False),
        ("169.254.7.7", 80, False, False),
        ("fe80::1%eth0", 80, False, False),
        ("fd00:ec2::254", 80, False, False),
        ("168.63.129.16", 80, False, False),
        # The rest of the world, private networks included.
        ("203.0.113.9", 443, True, True),
        ("2001:db8::9", 443, True, True),
        ("10.0.0.6", 80, True, True),
        ("192.168.1.1", 80, True, True),
    ],
)
def test_a_target_is_reached_or_not(address: str, port: int, from_here: bool, from_elsewhere: bool):
    assert decide(address, port, is_local_proxy=True) is from_here
    assert decide(address, port, is_local_proxy=False) is from_elsewhere


@pytest.mark.parametrize(
    ("address", "port", "allowed"),
    [
        ("127.0.0.1", OTHER, "127.0.0.1:9000"),
        ("127.0.0.1", OTHER, "127.0.0.0/8"),
        ("10.0.0.5", OTHER, "asked.example:9000"),
        ("169.254.169.254", 80, "169.254.169.254:80"),
        ("fd00:ec2::254", 80, "fd00:ec2::/32"),
    ],
)
def test_what_is_allowed_is_reached(address: str, port: int, allowed: str):
    assert decide(address, port, allowed, is_local_proxy=False)
    assert not decide(address, port + 1, "192.0.2.0/24", is_local_proxy=False)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "0.0.0.0", "10.0.0.5"])
def test_nothing_opens_the_way_to_the_api(address: str):
    allowed = (*EVERYWHERE, "127.0.0.1:8090", "asked.example:8090")
    assert not decide(address, API, *allowed, is_local_proxy=False)
    assert not decide(address, API, *allowed, is_local_proxy=True)


@pytest.mark.parametrize("address", ["::ffff:127.0.0.1", "::ffff:169.254.169.254"])
def test_ipv4_in_ipv6_clothes_is_ipv4(address: str):
    assert plain_address(address).version == 4


def test_what_was_written_is_read(tmp_path: Path):
    root = tmp_path / "instances"
    assert read_reach(root) == Reach()
    allowed = tuple(map(parse_allowed_target, ("[::1]:1", "10.0.0.0/8")))
    reach = REACH._replace(allowed=allowed, health_host="::1")
    write_reach(root, reach)
    assert read_reach(root) == reach
    path_for(root).write_text("{")
    assert read_reach(root) == Reach()


def test_what_an_earlier_version_wrote_is_read(tmp_path: Path):
    root = tmp_path / "instances"
    path_for(root).write_text('{"apiPorts": [8090], "healthPort": 8081, "allowTargets": []}')
    assert read_reach(root) == Reach((8090,), 8081, (), "127.0.0.1")

"""Order and presence of lines; what they do is tested on a real squid."""

import ipaddress
from datetime import timedelta
from typing import Any

import pytest

from proxy_operator.adapters.providers.squid.config import SquidSettings, squid_conf
from proxy_operator.provisioning.targets import parse_allowed_target


def lines_of(**settings: Any) -> list[str]:
    return squid_conf(SquidSettings(**{"port": 3128, **settings})).splitlines()


def access_of(**settings: Any) -> list[str]:
    return [line for line in lines_of(**settings) if line.startswith("http_access")]


def test_it_listens_where_it_is_told() -> None:
    assert "http_port 3128" in lines_of()
    assert "http_port 127.0.0.1:3128" in lines_of(bind="127.0.0.1")
    assert "http_port [::1]:3128" in lines_of(bind="::1")


def test_without_users_nobody_is_asked() -> None:
    assert not [line for line in lines_of() if "auth" in line]


def test_credentials_come_before_every_allowance() -> None:
    allowed = tuple(map(parse_allowed_target, ("10.0.0.1:80", "svc.example:80", "10.1.0.0/16")))
    assert access_of(users_file="/users", allowed_targets=allowed) == [
        "http_access deny manager",
        "http_access deny !authenticated",
        "http_access allow allowed_name0_port allowed_name0",
        "http_access deny denied_names",
        "http_access allow allowed_network0_port allowed_network0 !beside_allowed_80",
        "http_access allow web_ports allowed_network1 !beside_allowed",
        "http_access deny !web_ports",
        "http_access deny denied_networks",
        "http_access allow all",
    ]


@pytest.mark.parametrize(
    ("address", "other_family"), [("192.0.2.1", "100::1"), ("2001:db8::1", "240.0.0.1")]
)
def test_the_egress_address_is_the_source_and_the_other_family_has_none(
    address: str, other_family: str
) -> None:
    lines = [one for one in lines_of(egress_address=address) if "outgoing" in one]
    assert lines == [f"tcp_outgoing_address {it}" for it in (address, other_family)]
    assert not [one for one in lines_of() if "outgoing" in one]


def test_nothing_opens_a_closed_port_of_this_machine() -> None:
    allowed = tuple(map(parse_allowed_target, ("localhost:80", "127.0.0.0/8")))
    settings = {
        "users_file": "/users",
        "allowed_targets": allowed,
        "closed_ports": (8090, 8080),
        "own_addresses": ("127.0.0.1", "192.168.0.7", "198.51.100.7"),
    }
    assert access_of(**settings)[:4] == [
        "http_access deny manager",
        "http_access deny !authenticated",
        "http_access deny closed_ports this_machine",
        "http_access allow allowed_name0_port allowed_name0",
    ]
    lines = lines_of(**settings)
    assert "acl closed_ports port 8090 8080" in lines
    assert [one.split()[-1] for one in lines if one.startswith("acl this_machine ")] == [
        *("0.0.0.0/8", "127.0.0.0/8", "::/96"),
        *("192.168.0.7", "198.51.100.7"),
    ]


def test_what_is_allowed_takes_nothing_along_that_is_denied() -> None:
    texts = ("127.0.0.0/8", "10.0.0.7:80", "10.0.0.8:80", "::/0")
    lines = lines_of(allowed_targets=tuple(map(parse_allowed_target, texts)))

    def beside(name: str) -> list[str]:
        return [one.split()[-1] for one in lines if one.startswith(f"acl {name} ")]

    assert "10.0.0.0/8" in beside("beside_allowed")
    # Whatever is allowed at the port is no reason to deny it: a name may have both addresses.
    at_80 = [ipaddress.ip_network(text) for text in beside("beside_allowed_80")]
    for address, is_denied in (("10.0.0.6", True), ("10.0.0.7", False), ("10.0.0.8", False)):
        assert any(ipaddress.ip_address(address) in one for one in at_80) is is_denied
    for name in ("beside_allowed", "beside_allowed_80"):
        assert "169.254.0.0/16" in beside(name)
        assert not [one for one in beside(name) if one.startswith("127.") or ":" in one]
    everything = tuple(map(parse_allowed_target, ("0.0.0.0/0", "::/0")))
    # Squid takes no acl without a value.
    assert "acl beside_allowed dst ::/128" in lines_of(allowed_targets=everything)


def test_a_public_address_of_this_machine_is_denied_like_a_private_one() -> None:
    lines = lines_of(own_addresses=("::1", "192.168.0.7", "198.51.100.7", "2001:db8::7"))
    before = lines_of()
    assert [one for one in lines if one not in before] == [
        "acl denied_networks dst 198.51.100.7",
        "acl denied_networks dst 2001:db8::7",
    ]


def test_the_end_is_bounded() -> None:
    assert "shutdown_lifetime 3 seconds" in lines_of(shutdown_lifetime=timedelta(seconds=3))
    assert "max_filedescriptors 100" in lines_of(max_filedescriptors=100)


def test_the_same_settings_give_the_same_text() -> None:
    assert lines_of() == lines_of()

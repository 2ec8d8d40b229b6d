"""What a squid on this machine is told; what the lines do is tested on a real one."""

from typing import Any

import pytest

from proxy_operator.adapters.providers.local import squid_files
from proxy_operator.adapters.providers.local.reach import Reach
from proxy_operator.adapters.providers.local.squid_files import Surroundings
from proxy_operator.provisioning.targets import parse_allowed_target

SETTINGS = {
    "bind": "127.0.0.1",
    "users": "crawler:$6$salt$hash\n",
    "egressAddress": "127.0.0.2",
    "programs": {"squid": "/opt/squid", "authHelper": "/opt/basic_ncsa_auth"},
}


NOTHING = Reach()


def lines_of(reach: Reach = NOTHING, own: tuple[str, ...] = (), **changes: Any) -> list[str]:
    text = squid_files.conf_for(
        {**SETTINGS, **changes}, 40001, Surroundings(reach, own), descriptors=1024
    )
    return text.splitlines()


def test_it_is_what_was_asked_for():
    wanted = {
        "http_port 127.0.0.1:40001",
        "tcp_outgoing_address 127.0.0.2",
        # Relative: the user of squid may not be able to enter the directories above.
        "auth_param basic program /opt/basic_ncsa_auth users",
        "max_filedescriptors 1024",
    }
    assert wanted <= set(lines_of())


def test_the_hash_is_in_a_file_of_its_own():
    assert not [line for line in lines_of() if "$6$" in line]


def test_without_credentials_nobody_is_asked():
    assert not [line for line in lines_of(users=None) if "auth" in line]


def test_nothing_of_this_machine_is_allowed_when_the_operator_said_nothing():
    assert [line for line in lines_of() if line.startswith("http_access allow")] == [
        "http_access allow all"
    ]


@pytest.mark.parametrize(
    ("host", "acl", "besides"),
    [
        ("127.0.0.1", "acl allowed_network0 dst 127.0.0.1/32", " !beside_allowed_8081"),
        ("::1", "acl allowed_network0 dst ::1/128", " !beside_allowed_8081"),
        ("localhost", "acl allowed_name0 dstdomain -n localhost", ""),
    ],
)
def test_the_health_endpoint_is_one_port_of_one_host(host: str, acl: str, besides: str):
    lines = lines_of(Reach(health_port=8081, health_host=host))
    name = acl.split()[1]
    assert acl in lines
    assert f"acl {name}_port port 8081" in lines
    assert f"http_access allow {name}_port {name}{besides}" in lines


def test_what_the_operator_allows_and_closes_is_followed():
    reach = Reach((8090, 8080), None, (parse_allowed_target("10.0.0.0/8"),))
    lines = lines_of(reach, ("198.51.100.7",))
    assert "http_access allow web_ports allowed_network0 !beside_allowed" in lines
    assert "acl closed_ports port 8090 8080" in lines
    assert "acl this_machine dst 198.51.100.7" in lines
    assert "acl denied_networks dst 198.51.100.7" in lines


def test_the_command_line_has_no_daemon_and_no_secret():
    assert squid_files.arguments_for("/opt/squid", "proxy-aaaa2222") == [
        *("/opt/squid", "-N", "-d", "1", "-n", "proxyaaaa2222", "-f", "squid.conf")
    ]


@pytest.mark.parametrize(
    ("log", "complaint"),
    [
        ("12:00| FATAL: Unable to open HTTP Socket\n12:00| bye\n", "Unable to open HTTP Socket"),
        ("FATAL: first\nFATAL: last\n", "last"),
        ("12:00| hello\n", "it ended without a word"),
        ("", "it ended without a word"),
    ],
)
def test_the_last_complaint_is_the_reason(log: str, complaint: str):
    assert squid_files.complaint_of(log) == complaint

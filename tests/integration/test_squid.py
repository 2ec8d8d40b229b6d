"""A real squid on loopback, configured as ours are: who may use it, where it goes, what it adds.

Needs the program squid (package squid) and its helper basic_ncsa_auth.
"""

import contextlib
import os
import pwd
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from proxy_operator.adapters.providers.squid.config import (
    NCSA_AUTH,
    SquidSettings,
    squid_conf,
)
from proxy_operator.adapters.providers.squid.sha512_crypt import new_salt
from proxy_operator.adapters.providers.squid.users import users_file
from proxy_operator.domain.secret import Credentials
from proxy_operator.provisioning.targets import parse_allowed_target
from tests.unit.adapters.providers.local import targets
from tests.unit.adapters.providers.local.targets import (
    OK,
    Target,
    a_target,
    basic,
    connected,
    exchange,
    read_until,
    status,
)

SQUID = shutil.which("squid") or shutil.which("squid", path="/usr/sbin")
if SQUID is None or not Path(NCSA_AUTH).exists():
    pytest.fail("install the package squid: these tests run a real one", pytrace=False)

USER = "crawler"
PASSWORD = "p@s:s/#%"


def get(port: int, target: Target, extra: bytes = b"") -> bytes:
    """Fetch from a target through a proxy that is told to close."""
    return targets.get(port, target, b"Connection: close\r\n" + extra)


def a_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def unprivileged() -> str | None:
    """The user squid runs as: never root."""
    return pwd.getpwnam("nobody").pw_name if os.geteuid() == 0 else None


class NameServer:
    """Answers every question about IPv4 addresses with the same ones, in that order."""

    def __init__(self, host: str, *addresses: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 53))
        self._addresses = [socket.inet_aton(one) for one in addresses]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with self._socket:
            while True:
                question, client = self._socket.recvfrom(512)
                if not question:
                    return
                self._socket.sendto(self._answer(question), client)

    def _answer(self, question: bytes) -> bytes:
        end = question.index(b"\0", 12) + 5
        is_v4 = question[end - 4 : end - 2] == b"\0\1"
        found = self._addresses if is_v4 else []
        head = question[:2] + struct.pack("!HHHHH", 0x8180, 1, len(found), 0, 0)
        row = struct.pack("!HHHIH", 0xC00C, 1, 1, 60, 4)
        return head + question[12:end] + b"".join(row + address for address in found)

    def close(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(b"", self._socket.getsockname())
        self._thread.join()


class Squid:
    """A squid process and the port it listens on."""

    def __init__(
        self,
        directory: Path,
        *allowed: str,
        users: tuple[Credentials, ...] = (),
        extra: str = "",
    ) -> None:
        self.port = a_free_port()
        self.log = directory / "log"
        passwords = directory / "users"
        passwords.write_text("".join(users_file(one, new_salt()) for one in users))
        settings = SquidSettings(
            port=self.port,
            bind="127.0.0.1",
            users_file=str(passwords) if users else None,
            allowed_targets=tuple(parse_allowed_target(text) for text in allowed),
        )
        conf = directory / "squid.conf"
        conf.write_text(squid_conf(settings) + extra)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(SQUID), "-N", "-d", "1", "-n", f"test{self.port}", "-f", str(conf)],
                stdout=log,
                stderr=log,
                user=unprivileged(),
                extra_groups=[] if os.geteuid() == 0 else None,
                cwd="/",
                start_new_session=True,
            )

    def wait(self) -> "Squid":
        for _ in range(300):
            if self.process.poll() is not None:
                break
            with contextlib.suppress(OSError), connected(self.port):
                return self
            threading.Event().wait(0.05)
        raise AssertionError(self.log.read_text())


@contextlib.contextmanager
def a_squid(*allowed: str, users: tuple[Credentials, ...] = (), extra: str = "") -> Iterator[Squid]:
    # Not tmp_path: squid runs as another user, who may not enter that.
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        squid = Squid(Path(name), *allowed, users=users, extra=extra)
        try:
            yield squid.wait()
        finally:
            squid.process.kill()
            squid.process.wait()
            for left in Path("/dev/shm").glob(f"test{squid.port}-*.shm"):
                left.unlink()


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with a_target() as made:
        yield made


@pytest.fixture(scope="module")
def open_squid(target: Target) -> Iterator[Squid]:
    with a_squid(target.authority) as squid:
        yield squid


def complaints_of(conf: Path) -> tuple[int, list[str]]:
    """Let squid read a configuration; its exit code, and what it did not like."""
    done = subprocess.run(
        [str(SQUID), "-k", "parse", "-f", str(conf)], capture_output=True, text=True, check=False
    )
    complaints = [
        line
        for line in done.stderr.splitlines()
        if ("WARNING" in line or "ERROR" in line or "FATAL" in line)
        # That is what `via off` is for.
        and "HTTP requires the use of Via" not in line
    ]
    return done.returncode, complaints


@pytest.mark.parametrize(
    "settings",
    [
        SquidSettings(port=3128),
        SquidSettings(port=3128, bind="::1", users_file="/run/users", egress_address="192.0.2.1"),
        SquidSettings(
            port=80,
            allowed_targets=tuple(
                parse_allowed_target(text)
                for text in (
                    "localhost:80",
                    "10.0.0.0/8",
                    "[fd00::1]:443",
                    "svc.ns.cluster.local:80",
                )
            ),
        ),
    ],
)
def test_squid_reads_the_configuration_without_complaint(
    tmp_path: Path, settings: SquidSettings
) -> None:
    conf = tmp_path / "squid.conf"
    conf.write_text(squid_conf(settings))
    assert complaints_of(conf) == (0, [])


CREDENTIALS = [
    Credentials(USER, PASSWORD),
    Credentials("Case Kept", "p$x"),
    Credentials("quoted", "\"q'\\ %20+"),
    Credentials("long", "x" * 64),
    Credentials("longest", "0123456789" * 51 + "z"),
    Credentials("größe", "pässwörd-§-日本"),
]


@pytest.fixture(scope="module")
def closed_squid(target: Target) -> Iterator[Squid]:
    with a_squid(target.authority, users=tuple(CREDENTIALS)) as squid:
        yield squid


@pytest.mark.parametrize("credentials", CREDENTIALS, ids=lambda one: one.username)
def test_no_wrong_and_right_credentials(
    closed_squid: Squid, target: Target, credentials: Credentials
) -> None:
    user, password = credentials.username, credentials.password
    assert status(get(closed_squid.port, target)) == 407
    for wrong in (password + "x", password[:-1], password[:8], password.swapcase()):
        if wrong != password:
            assert status(get(closed_squid.port, target, basic(user, wrong))) == 407
    assert status(get(closed_squid.port, target, basic(user, password))) == 200
    assert "proxy-authorization" not in target.seen[-1].headers


def test_a_name_in_another_case_is_another_user(closed_squid: Squid, target: Target) -> None:
    assert status(get(closed_squid.port, target, basic(USER.upper(), PASSWORD))) == 407


def test_credentials_in_latin_1_are_understood(target: Target) -> None:
    with a_squid(target.authority, users=(Credentials("größe", "pässwörd"),)) as squid:
        assert status(get(squid.port, target, basic("größe", "pässwörd", "latin-1"))) == 200


def test_connect_asks_for_credentials_too(closed_squid: Squid, target: Target) -> None:
    host = target.authority.encode()
    ask = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n" % (host, host)
    assert status(exchange(closed_squid.port, ask + b"Connection: close\r\n\r\n")) == 407
    with connected(closed_squid.port) as client:
        client.sendall(ask + basic(USER, PASSWORD) + b"\r\n")
        assert status(read_until(client, lambda raw: raw.endswith(b"\r\n\r\n"))) == 200
        client.sendall(b"GET /inside HTTP/1.1\r\nHost: t\r\n\r\n")
        assert read_until(client, lambda _: False) == OK
    assert target.seen[-1].head == b"GET /inside HTTP/1.1\r\nHost: t"


def test_the_origin_sees_the_clients_headers_and_nothing_of_the_proxy(
    open_squid: Squid, target: Target
) -> None:
    sent = (
        b"User-Agent: crawler/1\r\nAccept: */*\r\nAccept-Encoding: gzip, br\r\nCookie: a=b\r\n"
        b"Proxy-Connection: keep-alive\r\nX-Forwarded-For: 192.0.2.7\r\n"
    )
    assert status(get(open_squid.port, target, sent)) == 200
    assert target.seen[-1].headers == {
        "host": target.authority,
        "user-agent": "crawler/1",
        "accept": "*/*",
        "accept-encoding": "gzip, br",
        "cookie": "a=b",
        "connection": "keep-alive",
    }
    assert target.seen[-1].head.startswith(b"GET /x?a=b HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ("", None),
        ("no-cache", "no-cache"),
        ("max-age=0", "max-age=0"),
        ("no-store", None),
    ],
)
def test_cache_control_is_the_clients_own_or_none(
    open_squid: Squid, target: Target, sent: str, seen: str | None
) -> None:
    extra = f"Cache-Control: {sent}\r\n".encode() if sent else b""
    get(open_squid.port, target, extra)
    assert target.seen[-1].headers.get("cache-control") == seen


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1.2.3",
        "localhost",
        "0.0.0.0",
        "0x7f.1",
        "2130706433",
        "10.0.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "169.254.169.254",
        "172.31.255.255",
        "192.168.1.1",
        "192.0.0.192",
        "224.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[::127.0.0.1]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::169.254.169.254]",
        "[2002:7f00:1::]",
        "metadata.google.internal",
        "METADATA.google.internal",
        "metadata.google.internal.",
    ],
)
def test_what_is_not_the_internet_is_denied(open_squid: Squid, host: str) -> None:
    ask = f"{host}:8080".encode()
    plain = b"GET http://%b/ HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % (ask, ask)
    assert status(exchange(open_squid.port, plain)) == 403
    tunnel = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % (ask, ask)
    assert status(exchange(open_squid.port, tunnel)) == 403


@pytest.mark.parametrize("port", [22, 25, 465, 587])
def test_ports_that_are_not_for_the_web_are_denied(open_squid: Squid, port: int) -> None:
    ask = b"CONNECT 192.0.2.1:%d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % port
    assert status(exchange(open_squid.port, ask)) == 403


@pytest.mark.parametrize("path", ["squid-internal-mgr/info", "squid-internal-mgr/menu"])
def test_the_cache_manager_is_denied(open_squid: Squid, path: str) -> None:
    for host in ("proxy", f"127.0.0.1:{open_squid.port}"):
        ask = f"GET http://{host}/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        assert status(exchange(open_squid.port, ask.encode())) == 403


def test_an_allowed_target_is_one_port_of_one_host(open_squid: Squid, target: Target) -> None:
    assert status(get(open_squid.port, target)) == 200
    with a_target() as neighbour:
        assert status(get(open_squid.port, neighbour)) == 403
        assert neighbour.seen == []


@pytest.mark.parametrize("allowed", ["127.0.0.0/8", "127.0.0.1/32"])
def test_an_allowed_network(target: Target, allowed: str) -> None:
    with a_squid(allowed) as squid:
        assert status(get(squid.port, target)) == 200


def test_an_allowed_name(target: Target) -> None:
    with a_squid(f"localhost:{target.port}") as squid:
        ask = b"GET http://localhost:%d/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        assert status(exchange(squid.port, ask % target.port)) == 200
        assert status(get(squid.port, target)) == 403


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("127.9.9.9", 403),
        # Allowed too, and what is public needs no allowance.
        ("127.8.8.8", 200),
        ("198.51.100.7", 200),
    ],
)
def test_a_name_opens_nothing_by_an_allowed_address_beside_a_denied_one(
    second: str, expected: int
) -> None:
    extra = "dns_nameservers 127.53.0.1\nconnect_timeout 1 seconds\n"
    ask = b"GET http://two.example:%d/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with contextlib.closing(NameServer("127.53.0.1", "127.0.0.1", second)), a_target() as target:
        with a_squid(target.authority, "127.8.8.0/24", extra=extra) as squid:
            assert status(exchange(squid.port, ask % target.port)) == expected
        assert len(target.seen) == (expected == 200)


def test_an_allowed_ipv6_target() -> None:
    with a_target("::1") as target, a_squid(target.authority) as squid:
        assert status(get(squid.port, target)) == 200
        assert target.seen[-1].headers["host"] == target.authority


def test_nothing_is_cached(open_squid: Squid, target: Target) -> None:
    cacheable = (
        f"\r\nDate: {formatdate(usegmt=True)}\r\nCache-Control: public, max-age=3600\r\n\r\n"
    )
    before = len(target.seen)
    target.answer = OK.replace(b"\r\n\r\n", cacheable.encode())
    try:
        for _ in range(3):
            assert status(get(open_squid.port, target)) == 200
    finally:
        target.answer = OK
    assert len(target.seen) - before == 3


def test_squid_stops_within_its_lifetime(target: Target) -> None:
    with a_squid(target.authority) as squid, connected(squid.port):
        squid.process.terminate()
        assert squid.process.wait(20) == 0

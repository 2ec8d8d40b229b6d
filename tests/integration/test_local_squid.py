"""A real squid in a local instance: what it is born with, what it serves, how it ends.

Needs the program squid and its helper basic_ncsa_auth (package squid).
"""

import ctypes
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy_operator.adapters.providers.local import layout
from proxy_operator.adapters.providers.local.instances import Instances
from proxy_operator.adapters.providers.local.programs import find_squid
from proxy_operator.adapters.providers.local.reach import Reach, write_reach
from proxy_operator.domain.instance import Instance, InstanceState
from proxy_operator.domain.proxy import LocalBlock, LocalEngine
from proxy_operator.domain.secret import Credentials
from proxy_operator.provisioning.contract import CreateRequest
from proxy_operator.provisioning.errors import EnvironmentProviderError
from proxy_operator.provisioning.targets import parse_allowed_target
from proxy_operator.runtime.clock import SystemClock, boottime
from tests.e2e.processes import Stat, everybody, group_of, until
from tests.local_instances import end_all, is_alive, process_of
from tests.unit.adapters.providers.local.conftest import a_request, when_running
from tests.unit.adapters.providers.local.targets import (
    OK,
    Target,
    a_target,
    basic,
    connected,
    exchange,
    get,
    read_until,
    status,
)

CREDENTIALS = Credentials("crawler", "s3cret-Wort")
LOGIN = basic(CREDENTIALS.username, CREDENTIALS.password)
CLOSE = b"Connection: close\r\n"


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    find_squid()
    path = tmp_path / "instances"
    yield path
    end_all(path)


@pytest.fixture
def instances(root: Path) -> Instances:
    return Instances(root, bind="127.0.0.1", cluster_id="cluster-1", clock=SystemClock())


@pytest.fixture
def target() -> Iterator[Target]:
    with a_target() as made:
        yield made


def allow(root: Path, *targets: str, closed: tuple[int, ...] = (), health: int | None = None):
    root.parent.mkdir(exist_ok=True)
    write_reach(root, Reach(closed, health, tuple(map(parse_allowed_target, targets))))


def a_squid_request(
    *, credentials: Credentials | None = None, egress: str | None = None, **spec: Any
) -> CreateRequest:
    local = LocalBlock(engine=LocalEngine.SQUID, egress_address=egress)
    return a_request(credentials=credentials, local=local, **spec)


def created(instances: Instances, request: CreateRequest) -> Instance:
    instances.create(request, threading.Event())
    return when_running(instances, request.name)


def port_of(instance: Instance) -> int:
    assert instance.port is not None
    return instance.port


def members(directory: Path) -> list[Stat]:
    """Launcher, squid and its helpers, which have process groups of their own."""
    leader = process_of(directory)
    found = group_of(leader)
    pids = {one.pid for one in found}
    helpers = [one for one in everybody() if one.parent in pids and one.pid not in pids]
    return [*found, *helpers]


def squid_of(directory: Path) -> int:
    leader = process_of(directory)
    [squid] = [one for one in everybody() if one.parent == leader]
    return squid.pid


def segments_of(name: str) -> list[str]:
    return [one.name for one in Path("/dev/shm").glob(f"{name.replace('-', '')}-*")]


def until_gone(found: list[Stat]) -> None:
    assert len(found) >= 2
    until(lambda: not [one for one in found if is_alive(one.pid)], "every process has ended")


# What it is born with.


def test_its_processes_take_nothing_of_the_operator_along(
    instances: Instances, root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HTTP_PROXY", "http://elsewhere.example:1")
    inherited, other_end = os.pipe()
    os.set_inheritable(inherited, True)
    request = a_squid_request(credentials=CREDENTIALS)
    created(instances, request)
    found = members(root / request.name)
    assert len(found) == 3
    for one in found:
        proc = Path(f"/proc/{one.pid}")
        names = {row.split("=")[0] for row in (proc / "environ").read_text().split("\0") if row}
        assert names <= {"HOME", "LANG", "PATH", "LC_CTYPE", "SQUID_DEBUG"}
        held = {os.readlink(fd) for fd in (proc / "fd").iterdir()}
        assert os.readlink(f"/proc/self/fd/{inherited}") not in held
        assert (
            b"s3cret-Wort" not in (proc / "cmdline").read_bytes() + (proc / "environ").read_bytes()
        )
        assert os.getsid(one.pid) != os.getsid(0)
        if one.group == process_of(root / request.name):
            outs = [os.readlink(proc / "fd" / number) for number in "01"]
            assert outs == [os.devnull, os.devnull]
    os.close(inherited)
    os.close(other_end)


def test_squid_never_runs_as_root(instances: Instances, root: Path):
    request = a_squid_request(credentials=CREDENTIALS)
    created(instances, request)
    for one in members(root / request.name):
        if one.pid != process_of(root / request.name):
            assert Path(f"/proc/{one.pid}").stat().st_uid != 0


def test_files_are_for_one_user_only_and_hold_no_password(instances: Instances, root: Path):
    request = a_squid_request(credentials=CREDENTIALS)
    created(instances, request)
    directory = root / request.name
    files = [one for one in directory.rglob("*") if one.is_file()]
    assert {one.name for one in directory.iterdir()} == {
        *(layout.LOCK, layout.RECORD, layout.PROCESS, layout.LISTENING, layout.LOG, layout.SQUID),
    }
    assert {one.name for one in (directory / layout.SQUID).iterdir()} == {"squid.conf", "users"}
    assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    # Squid may read its files where it cannot write: no new file can pose as one of ours.
    assert (directory / layout.SQUID).stat().st_uid == os.geteuid()
    for one in files:
        assert b"s3cret-Wort" not in one.read_bytes()


def test_it_listens_where_it_says_and_nowhere_else(instances: Instances, root: Path):
    request = a_squid_request()
    port = port_of(created(instances, request))
    inodes = {
        os.readlink(fd).removeprefix("socket:[").removesuffix("]")
        for one in members(root / request.name)
        for fd in Path(f"/proc/{one.pid}/fd").iterdir()
    }
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    rows += [row.split() for row in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and row[9] in inodes]
    assert listening == [f"0100007F:{port:04X}"]


def test_nothing_is_left_in_shared_memory_even_while_it_runs(instances: Instances, root: Path):
    request = a_squid_request()
    created(instances, request)
    assert segments_of(request.name) == []


def test_it_is_small_and_starts_fast(instances: Instances, root: Path):
    request = a_squid_request(credentials=CREDENTIALS)
    began = time.monotonic()
    created(instances, request)
    assert time.monotonic() - began < 5
    total = 0
    for one in members(root / request.name):
        rows = Path(f"/proc/{one.pid}/smaps_rollup").read_text().splitlines()
        total += next(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
    assert total < 60_000


ANOTHER_USER = textwrap.dedent("""
    import os, pathlib, sys, threading
    from proxy_operator.adapters.providers.local.instances import Instances
    from proxy_operator.runtime.clock import SystemClock
    from tests.integration.test_local_squid import CREDENTIALS, a_squid_request, created

    assert os.geteuid() != 0
    root = pathlib.Path(sys.argv[1])
    ours = Instances(root, bind="127.0.0.1", cluster_id="cluster-1", clock=SystemClock())
    print(created(ours, a_squid_request(credentials=CREDENTIALS)).port)
""")


def test_an_operator_without_rights_runs_it_as_itself(root: Path, target: Target):
    allow(root, target.authority)
    # Another number in a user namespace: the code of this checkout stays readable.
    other = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    done = subprocess.run(
        [*(other if os.geteuid() == 0 else ()), sys.executable, "-c", ANOTHER_USER, str(root)],
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
        cwd=Path(__file__).parents[2],
        env={"PYTHONPATH": ".", "PATH": os.defpath},
    )
    port = int(done.stdout)
    assert status(get(port, target, CLOSE)) == 407
    assert status(get(port, target, CLOSE + LOGIN)) == 200
    [directory] = root.iterdir()
    launcher, squid = process_of(directory), squid_of(directory)
    assert Path(f"/proc/{launcher}").stat().st_uid == Path(f"/proc/{squid}").stat().st_uid


# Where it listens.


def test_a_port_that_was_asked_for_is_taken(instances: Instances):
    with socket.create_server(("127.0.0.1", 0)) as trial:
        port = int(trial.getsockname()[1])
    assert port_of(created(instances, a_squid_request(port=port))) == port


def test_a_port_in_use_is_named_and_nothing_is_left(instances: Instances, root: Path):
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        port = squatter.getsockname()[1]
        request = a_squid_request(port=port)
        with pytest.raises(EnvironmentProviderError, match=f"port {port}: Address already in use"):
            instances.create(request, threading.Event())
    until(lambda: instances.observe(request.name) is None, "nothing is left")
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    ("bind", "hosts"),
    [
        ("::1", ("::1",)),
        ("0.0.0.0", ("127.0.0.1", "127.0.0.9")),
        ("::", ("::1", "127.0.0.1")),
    ],
)
def test_it_listens_on_other_addresses_too(root: Path, bind: str, hosts: tuple[str, ...]):
    elsewhere = Instances(root, bind=bind, cluster_id="cluster-1", clock=SystemClock())
    instance = created(elsewhere, a_squid_request(credentials=CREDENTIALS))
    assert instance.ip not in (None, bind) or bind == "::1"
    for host in hosts:
        with connected(port_of(instance), host) as client:
            client.sendall(b"GET http://x.example/ HTTP/1.1\r\nHost: x\r\n%b\r\n" % CLOSE)
            assert status(read_until(client, lambda _: False)) == 407


def test_its_port_is_kept_for_it_while_it_opens_it_anew(instances: Instances, root: Path):
    request = a_squid_request()
    port = port_of(created(instances, request))
    watcher, squid = process_of(root / request.name), squid_of(root / request.name)
    os.kill(watcher, signal.SIGSTOP)  # it is not to notice
    os.kill(squid, signal.SIGKILL)
    until(lambda: not is_alive(squid), "nobody listens")
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    os.kill(watcher, signal.SIGCONT)
    until(lambda: not is_alive(watcher), "and the port is free")
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))


# What it serves.


def test_no_wrong_and_right_credentials(instances: Instances, root: Path, target: Target):
    allow(root, target.authority)
    port = port_of(created(instances, a_squid_request(credentials=CREDENTIALS)))
    assert status(get(port, target, CLOSE)) == 407
    assert status(get(port, target, CLOSE + basic("crawler", "s3cret-Wor"))) == 407
    assert target.seen == []
    sent = b"User-Agent: c/1\r\nX-Forwarded-For: 192.0.2.7\r\nProxy-Connection: close\r\n"
    assert status(get(port, target, sent + LOGIN)) == 200
    assert target.seen[0].headers == {
        "host": target.authority,
        "user-agent": "c/1",
        "connection": "keep-alive",
    }


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "0.0.0.0", "[::1]", "169.254.169.254", "metadata.google.internal"],
)
def test_this_machine_and_metadata_are_denied(instances: Instances, target: Target, host: str):
    port = port_of(created(instances, a_squid_request()))
    authority = f"{host}:{target.port}".encode()
    plain = b"GET http://%b/ HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (authority, authority, CLOSE)
    tunnel = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (authority, authority, CLOSE)
    assert status(exchange(port, plain)) == 403
    assert status(exchange(port, tunnel)) == 403
    assert target.seen == []


def test_requests_leave_from_the_egress_address_or_not_at_all(instances: Instances, root: Path):
    with a_target("::1") as v6, a_target() as v4:
        allow(root, v4.authority, v6.authority)
        port = port_of(created(instances, a_squid_request(egress="127.0.0.9")))
        assert status(get(port, v4, CLOSE)) == 200
        assert v4.seen[0].peer[0] == "127.0.0.9"
        assert status(get(port, v6, CLOSE)) == 503
        assert v6.seen == []


def answered(port: int, target: Target) -> int | None:
    """The status; None while squid opens its port anew, some 20 ms."""
    try:
        return status(get(port, target, CLOSE))
    except (ConnectionRefusedError, ConnectionResetError):
        return None


def test_it_follows_what_the_operator_allows_while_it_runs(instances: Instances, root: Path):
    with a_target() as api, a_target() as health, a_target() as page:
        request = a_squid_request()
        port = port_of(created(instances, request))
        pids = {one.pid for one in members(root / request.name)}
        assert status(get(port, page, CLOSE)) == 403

        with connected(port) as tunnel:
            allow(root, "127.0.0.0/8", closed=(api.port,), health=health.port)
            until(lambda: answered(port, page) == 200, "the page is reached")
            assert status(get(port, health, CLOSE)) == 200
            # Nothing opens the way to the operator's API.
            for host in ("127.0.0.1", "localhost", "127.1.2.3"):
                ask = b"GET http://%b:%d/ HTTP/1.1\r\nHost: x\r\n%b\r\n"
                answer = exchange(port, ask % (host.encode(), api.port, CLOSE))
                assert status(answer) == 403

            authority = page.authority.encode()
            tunnel.sendall(b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (authority, authority))
            assert status(read_until(tunnel, lambda raw: raw.endswith(b"\r\n\r\n"))) == 200
            allow(root, health=health.port)
            until(lambda: answered(port, page) == 403, "the page is closed again")
            assert status(get(port, health, CLOSE)) == 200
            # A connection that was allowed goes on.
            tunnel.sendall(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n")
            assert read_until(tunnel, lambda _: False) == OK
        assert {one.pid for one in members(root / request.name)} == pids


# How it ends.


def test_it_ends_at_once_when_told_with_everything_that_belongs_to_it(
    instances: Instances, root: Path
):
    request = a_squid_request(credentials=CREDENTIALS)
    created(instances, request)
    found = members(root / request.name)
    assert len(found) == 3
    began = time.monotonic()
    until(lambda: not instances.end(request.name), "it is gone", every=0.01)
    assert time.monotonic() - began < 2
    until_gone(found)
    assert list(root.iterdir()) == []
    assert segments_of(request.name) == []


def test_when_squid_is_killed_the_instance_is_stopped(instances: Instances, root: Path):
    request = a_squid_request(credentials=CREDENTIALS)
    created(instances, request)
    found = members(root / request.name)
    os.kill(squid_of(root / request.name), signal.SIGKILL)
    until_gone(found)
    instance = instances.observe(request.name)
    assert instance is not None
    assert (instance.state, instance.ip, instance.port) == (InstanceState.STOPPED, None, None)
    assert not instances.end(request.name)
    created(instances, request)


def test_when_its_watcher_is_killed_squid_goes_too(instances: Instances, root: Path):
    request = a_squid_request(credentials=CREDENTIALS)
    created(instances, request)
    found = members(root / request.name)
    os.kill(process_of(root / request.name), signal.SIGKILL)
    until_gone(found)
    instance = instances.observe(request.name)
    assert instance is not None
    assert instance.state is InstanceState.STOPPED
    assert segments_of(request.name) == []


def test_a_squid_that_survives_its_watcher_is_not_missed(instances: Instances, root: Path):
    request = a_squid_request()
    created(instances, request)
    squid = squid_of(root / request.name)
    # It has the lock from birth, so no moment and no missing death signal could hide it.
    locked = os.stat(root / request.name / layout.LOCK).st_ino
    held = [os.stat(fd).st_ino for fd in Path(f"/proc/{squid}/fd").iterdir()]
    assert locked in held


def test_what_is_deaf_is_killed(instances: Instances, root: Path):
    request = a_squid_request(credentials=CREDENTIALS)
    created(instances, request)
    directory = root / request.name
    found = members(directory)
    for one in group_of(process_of(directory)):
        os.kill(one.pid, signal.SIGSTOP)
    assert instances.end(request.name)
    layout.write_atomically(directory / layout.DELETION, {"since": boottime() - 10})
    until(lambda: instances.observe(request.name) is None, "it is killed")
    until_gone(found)
    assert segments_of(request.name) == []


def test_an_operator_that_is_process_1_is_left_no_zombie(instances: Instances, root: Path):
    become_reaper = ctypes.CDLL(None).prctl
    become_reaper(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans come to us, as to process 1
    try:
        killed, deleted = (a_squid_request(credentials=CREDENTIALS) for _ in range(2))
        for request in (killed, deleted):
            created(instances, request)
        os.kill(squid_of(root / killed.name), signal.SIGKILL)
        for request in (killed, deleted):
            name = request.name
            until(lambda one=name: not instances.end(one), "it is gone")  # type: ignore[misc]
        assert [one for one in everybody() if one.parent == os.getpid() and one.state == "Z"] == []
    finally:
        become_reaper(36, 0, 0, 0, 0)


def test_another_operator_finds_all_as_it_was(instances: Instances, root: Path, target: Target):
    allow(root, target.authority)
    request = a_squid_request(credentials=CREDENTIALS)
    before = created(instances, request)
    later = Instances(root, bind="127.0.0.1", cluster_id="cluster-1", clock=SystemClock())
    later.create(request, threading.Event())
    assert later.observe(request.name) == before
    assert status(get(port_of(before), target, CLOSE + LOGIN)) == 200


def test_the_log_says_how_it_went_and_no_request(instances: Instances, root: Path, target: Target):
    allow(root, target.authority)
    request = a_squid_request(credentials=CREDENTIALS)
    port = port_of(created(instances, request))
    for extra in (CLOSE, CLOSE + basic("crawler", "wrong"), CLOSE + LOGIN):
        get(port, target, extra)
    log = (root / request.name / layout.LOG).read_text()
    assert "Accepting HTTP Socket connections" in log
    assert target.authority not in log
    assert "crawler" not in log


def test_a_full_log_is_no_reason_to_stop(instances: Instances, root: Path, target: Target):
    allow(root, target.authority)
    request = a_squid_request()
    port = port_of(created(instances, request))
    directory = root / request.name
    squid = squid_of(directory)
    os.truncate(directory / layout.LOG, layout.LOG_BYTES)
    os.kill(squid, signal.SIGHUP)  # it has much to say of that
    until(lambda: answered(port, target) == 200, "it serves")
    assert squid_of(directory) == squid
    assert (directory / layout.LOG).stat().st_size == layout.LOG_BYTES

"""Instances in the real world: directories, locks, processes. Each test ends what it started."""

import ctypes
import json
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

from proxy_operator.adapters.providers.local import layout, processes
from proxy_operator.adapters.providers.local.instances import Instances
from proxy_operator.domain.instance import Instance, InstanceState
from proxy_operator.domain.proxy import LocalBlock
from proxy_operator.domain.secret import Credentials
from proxy_operator.provisioning.contract import CreateRequest
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    PermanentProviderError,
    TransientProviderError,
)
from proxy_operator.runtime.clock import SystemClock, boottime
from tests.local_instances import is_alive, open_descriptors, process_of
from tests.unit.adapters.providers.local.conftest import a_request, when_running
from tests.unit.adapters.providers.local.targets import (
    a_target,
    basic,
    exchange,
    get,
    pause,
    status,
)

CREDENTIALS = Credentials("crawler", "s3cret-Wort")


def created(instances: Instances, request: CreateRequest | None = None) -> CreateRequest:
    request = request or a_request()
    instances.create(request, threading.Event())
    when_running(instances, request.name)
    return request


def seen(instances: Instances, request: CreateRequest) -> Instance:
    instance = instances.observe(request.name)
    assert instance is not None
    return instance


def ended(instances: Instances, request: CreateRequest) -> None:
    deadline = time.monotonic() + 30
    while instances.end(request.name):
        assert time.monotonic() < deadline
        pause(0.01)


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """End a process of a test and wait until it has gone."""
    os.kill(pid, number)
    deadline = time.monotonic() + 30
    while is_alive(pid):
        assert time.monotonic() < deadline
        pause(0.01)


def another_operator(root: Path, **changes: str) -> Instances:
    settings = {"bind": "127.0.0.1", "cluster_id": "cluster-1", **changes}
    return Instances(root, clock=SystemClock(), **settings)


def zombies() -> list[int]:
    """Return ended children of this process that nobody collected."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] == "Z" and int(fields[1]) == os.getpid():
            found.append(int(path.parent.name))
    return found


# What a process is born with.


def test_a_process_takes_nothing_of_the_operator_along(
    instances: Instances, root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HTTP_PROXY", "http://elsewhere.example:1")
    monkeypatch.setenv("DISCOVERY_TOKEN", "a-token")
    inherited, other_end = os.pipe()
    os.set_inheritable(inherited, True)
    request = created(instances, a_request(credentials=CREDENTIALS))
    proc = Path(f"/proc/{process_of(root / request.name)}")
    names = {row.split("=")[0] for row in (proc / "environ").read_text().split("\0") if row}
    assert names <= {"HOME", "LANG", "PATH", "LC_CTYPE"}
    assert sorted(int(fd.name) for fd in (proc / "fd").iterdir()) == [0, 1, 2, 3, 4]
    assert str((proc / "cwd").readlink()) == "/"
    assert os.getsid(int(proc.name)) == os.getpgid(int(proc.name)) == int(proc.name)
    os.close(inherited)
    os.close(other_end)


def test_a_password_is_nowhere_but_in_memory(instances: Instances, root: Path):
    request = created(instances, a_request(credentials=CREDENTIALS))
    proc = Path(f"/proc/{process_of(root / request.name)}")
    places = [proc / "cmdline", proc / "environ", *(root / request.name).iterdir()]
    assert len(places) > 5
    for place in places:
        assert b"s3cret-Wort" not in place.read_bytes()


def test_files_are_for_the_owner_only(instances: Instances, root: Path):
    request = created(instances)
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert stat.S_IMODE((root / request.name).stat().st_mode) == 0o700
    files = list((root / request.name).iterdir())
    assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}


def test_a_process_at_work_writes_nothing_more(instances: Instances, root: Path):
    request = created(instances)
    known = {layout.LOCK, layout.RECORD, layout.PROCESS, layout.LISTENING, layout.LOG}
    port = seen(instances, request).port
    assert port is not None
    with a_target() as target:
        assert status(get(port, target)) == 200
    assert status(exchange(port, b"junk " + basic("crawler", "s3cret-Wort") + b"\r\n")) == 400
    directory = root / request.name
    assert {one.name for one in directory.iterdir()} == known
    assert (directory / layout.LOG).read_bytes() == b""
    limits = resource.prlimit(process_of(directory), resource.RLIMIT_FSIZE)
    assert limits == (layout.LOG_BYTES, layout.LOG_BYTES)


def test_a_process_listens_where_it_says_and_nowhere_else(instances: Instances, root: Path):
    request = created(instances)
    inodes = {
        os.readlink(fd).removeprefix("socket:[").removesuffix("]")
        for fd in Path(f"/proc/{process_of(root / request.name)}/fd").iterdir()
    }
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    rows += [row.split() for row in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and row[9] in inodes]
    assert listening == [f"0100007F:{seen(instances, request).port:04X}"]


def test_a_process_is_small_and_starts_fast(instances: Instances, root: Path):
    request = created(instances)
    pid = process_of(root / request.name)
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    assert ticks / os.sysconf("SC_CLK_TCK") < 0.6
    assert int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 < 45_000_000


def test_a_process_ends_cleanly_when_told(instances: Instances, root: Path):
    request = created(instances)
    kill(process_of(root / request.name), signal.SIGTERM)
    assert seen(instances, request).state is InstanceState.STOPPED


# Where it listens.


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as trial:
        return int(trial.getsockname()[1])


def test_a_port_that_was_asked_for_is_taken(instances: Instances):
    port = free_port()
    assert seen(instances, created(instances, a_request(port=port))).port == port


def test_a_port_in_use_is_named_and_nothing_is_left(instances: Instances, root: Path):
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        port = squatter.getsockname()[1]
        request = a_request(port=port)
        with pytest.raises(EnvironmentProviderError, match=f"port {port}: Address already in use"):
            instances.create(request, threading.Event())
    deadline = time.monotonic() + 30
    while instances.observe(request.name) is not None:
        assert time.monotonic() < deadline
        pause(0.01)
    assert list(root.iterdir()) == []
    instances.create(request, threading.Event())
    assert seen(instances, request).port == port


def test_an_egress_address_of_another_machine_is_named(instances: Instances, root: Path):
    request = a_request(local=LocalBlock(egress_address="203.0.113.7"))
    with pytest.raises(EnvironmentProviderError, match=r"egressAddress: cannot send from 203\.0"):
        instances.create(request, threading.Event())
    assert not root.exists()


def test_a_bind_address_of_another_machine_is_named(root: Path):
    elsewhere = another_operator(root, bind="203.0.113.7")
    with pytest.raises(EnvironmentProviderError, match=r"listen on 203\.0\.113\.7"):
        elsewhere.create(a_request(credentials=CREDENTIALS), threading.Event())


def test_behind_a_wildcard_clients_get_an_address_they_can_reach(root: Path):
    everywhere = another_operator(root, bind="0.0.0.0")
    request = created(everywhere, a_request(credentials=CREDENTIALS))
    instance = seen(everywhere, request)
    assert instance.ip not in (None, "0.0.0.0")
    assert instance.ip is not None
    assert instance.port is not None
    socket.create_connection((instance.ip, instance.port), timeout=5).close()


# Who outlives whom.


def test_another_operator_finds_all_as_it_was(instances: Instances, root: Path):
    request = created(instances, a_request(credentials=CREDENTIALS))
    before = seen(instances, request)
    pid = process_of(root / request.name)
    later = another_operator(root)
    later.create(request, threading.Event())
    assert seen(later, request) == before
    assert process_of(root / request.name) == pid
    assert later.list_ours().items == (before,)
    assert before.port is not None
    with a_target() as target:
        assert status(get(before.port, target)) == 407
        assert status(get(before.port, target, basic("crawler", "s3cret-Wort"))) == 200
    ended(later, request)
    assert not is_alive(pid)
    assert list(root.iterdir()) == []


OPERATOR = textwrap.dedent("""
    import os, pathlib, signal, sys, threading
    from proxy_operator.adapters.providers.local import instances, processes
    from proxy_operator.runtime.clock import SystemClock
    from tests.unit.adapters.providers.local.conftest import a_request

    root, point = pathlib.Path(sys.argv[1]), sys.argv[2]

    def die(*args, **kwargs):
        os.kill(os.getpid(), signal.SIGKILL)

    if point == "before the name":
        pathlib.Path.rename = die
    elif point == "before the process":
        processes.start = die
    elif point == "before the settings":
        processes._send = die
    elif point == "before the answer":
        processes._first_words = die
    elif point == "during the removal":
        instances.shutil.rmtree = die
    ours = instances.Instances(root, bind="127.0.0.1", cluster_id="cluster-1", clock=SystemClock())
    request = a_request()
    print(request.uid, flush=True)
    ours.create(request, threading.Event())
    if point == "during the removal":
        while True:
            ours.end(request.name)
    die()
""")


def uid_of_killed_operator(root: Path, point: str) -> str:
    """Let an operator die by SIGKILL at a point of its work; return the UID it worked on."""
    done = subprocess.run(
        [sys.executable, "-c", OPERATOR, str(root), point],
        stdout=subprocess.PIPE,
        timeout=60,
        check=False,
        cwd=Path(__file__).parents[5],
        env={"PYTHONPATH": ".", "PATH": os.defpath},
    )
    assert done.returncode == -signal.SIGKILL
    return done.stdout.decode().strip()


@pytest.mark.parametrize(
    ("point", "state"),
    [
        ("before the name", None),
        ("before the process", InstanceState.STOPPED),
        ("before the settings", InstanceState.STOPPED),
        ("before the answer", InstanceState.RUNNING),
        ("after all", InstanceState.RUNNING),
        ("during the removal", None),
    ],
)
def test_an_operator_that_dies_at_any_point_leaves_what_the_next_one_can_tell(
    instances: Instances, root: Path, point: str, state: InstanceState | None
):
    uid = uid_of_killed_operator(root, point)
    request = a_request()
    names = [one.name for one in root.iterdir() if one.name.startswith("proxy-")]
    assert len(names) == (state is not None)
    for name in names:
        deadline = time.monotonic() + 30
        while (found := instances.observe(name)) is None or found.state is not state:
            assert time.monotonic() < deadline
            pause(0.01)
        assert found.labels["proxy-operator-uid"] == uid
        assert instances.list_ours().items == (found,)
        while instances.end(name):
            pause(0.01)
    assert instances.list_ours().items == ()
    # The name is free, whatever happened: the same create works now.
    assert seen(instances, created(instances, request)).state is InstanceState.RUNNING
    ended(instances, request)
    litter = list(root.iterdir())
    for one in litter:
        os.utime(one, (0, 0))
    instances.list_ours()
    assert list(root.iterdir()) == []


def test_litter_of_a_moment_ago_may_be_work_in_progress(instances: Instances, root: Path):
    created(instances)
    (root / ".new-abc").mkdir()
    (root / ".old-abc").mkdir()
    (root / "not-ours").mkdir()
    os.utime(root / "not-ours", (0, 0))
    instances.list_ours()
    assert {one.name for one in root.iterdir()} > {".new-abc", ".old-abc", "not-ours"}


def test_settings_that_never_come_end_the_launcher(instances: Instances, root: Path):
    request = created(instances)
    ended(instances, request)
    lock = instances._claim(request, threading.Event())
    assert lock is not None
    assert processes.start(root / request.name, lock, b"") == {}
    os.close(lock)
    assert seen(instances, request).state is InstanceState.STOPPED


def test_a_launcher_that_dies_without_a_word_may_have_made_something(
    instances: Instances, root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(processes, "start", lambda *_: {})
    request = a_request()
    with pytest.raises(TransientProviderError, match="ended while starting"):
        instances.create(request, threading.Event())
    assert seen(instances, request).state is InstanceState.STOPPED


# How it ends.


def test_a_killed_process_is_seen_stopped_and_leaves_no_zombie(instances: Instances, root: Path):
    request = created(instances)
    kill(process_of(root / request.name))
    instance = seen(instances, request)
    assert instance.state is InstanceState.STOPPED
    assert (instance.ip, instance.port) == (None, None)
    assert zombies() == []
    instances.create(request, threading.Event())
    assert seen(instances, request).state is InstanceState.STOPPED
    assert not instances.end(request.name)
    assert instances.observe(request.name) is None


def test_an_operator_that_is_process_1_collects_what_ends(instances: Instances, root: Path):
    become_reaper = ctypes.CDLL(None).prctl
    become_reaper(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans come to us, as to process 1
    try:
        stopped, deleted = created(instances), created(instances)
        kill(process_of(root / stopped.name))
        assert zombies() == [process_of(root / stopped.name)]
        assert seen(instances, stopped).state is InstanceState.STOPPED
        assert zombies() == []
        ended(instances, deleted)
        assert zombies() == []
    finally:
        become_reaper(36, 0, 0, 0, 0)


def test_a_deletion_goes_on_with_every_look(instances: Instances, root: Path):
    request = created(instances)
    pid = process_of(root / request.name)
    os.kill(pid, signal.SIGSTOP)  # deaf to SIGTERM
    assert instances.end(request.name)
    assert seen(another_operator(root), request).state is InstanceState.TERMINATING
    assert [one.state for one in instances.list_ours().items] == [InstanceState.TERMINATING]
    assert is_alive(pid)
    long_ago = boottime() - 10
    layout.write_atomically(root / request.name / layout.DELETION, {"since": long_ago})
    deadline = time.monotonic() + 30
    while another_operator(root).observe(request.name) is not None:
        assert time.monotonic() < deadline
        pause(0.01)
    assert not is_alive(pid)
    assert list(root.iterdir()) == []


def test_a_pid_that_was_reused_is_not_killed(instances: Instances, root: Path):
    request = created(instances)
    directory = root / request.name
    with subprocess.Popen(["/bin/sleep", "60"], start_new_session=True) as innocent:
        real = json.loads((directory / layout.PROCESS).read_text())
        layout.write_atomically(directory / layout.PROCESS, {**real, "pid": innocent.pid})
        assert instances.end(request.name)
        pause(0.1)
        assert innocent.poll() is None
        innocent.kill()
    layout.write_atomically(directory / layout.PROCESS, real)
    ended(instances, request)


def test_a_group_whose_leader_has_gone_is_ended_too(instances: Instances, root: Path):
    request = created(instances)
    directory = root / request.name
    kill(process_of(directory))
    lock = processes.try_lock(directory)
    assert lock is not None
    with subprocess.Popen(
        ["/bin/sh", "-c", "sleep 60 & echo $!"],
        stdout=subprocess.PIPE,
        start_new_session=True,
        pass_fds=[lock],
    ) as leader:
        assert leader.stdout is not None
        member = int(leader.stdout.readline())
        start = layout.start_of(leader.pid)
    os.close(lock)
    layout.write_atomically(directory / layout.PROCESS, {"pid": leader.pid, "start": start})
    ended(instances, request)
    assert not is_alive(member)


def test_another_clusters_instance_is_left_alone(instances: Instances, root: Path):
    request = created(instances)
    other = another_operator(root, cluster_id="cluster-2")
    with pytest.raises(PermanentProviderError, match="another cluster"):
        other.end(request.name)
    layout.write_atomically(root / request.name / layout.DELETION, {"since": 0})
    assert seen(other, request).state is InstanceState.TERMINATING
    assert is_alive(process_of(root / request.name))


def test_a_survey_sees_every_clusters_instances_and_ends_none(instances: Instances, root: Path):
    request = created(instances)
    other = another_operator(root, cluster_id="cluster-2")
    assert other.list_ours().items == ()
    assert other.list_all() == ((seen(instances, request),), True)
    pid = process_of(root / request.name)
    # Asked to go long ago: our own list would now kill it.
    layout.write_atomically(root / request.name / layout.DELETION, {"since": 0})
    litter = root / ".old-abc"
    litter.mkdir()
    os.utime(litter, (0, 0))
    for operator in (instances, other):
        (found,) = operator.list_all().items
        assert found.state is InstanceState.TERMINATING
        assert found.labels["proxy-operator-cluster"] == "cluster-1"
    assert is_alive(pid)
    assert litter.exists()


def test_a_survey_says_when_it_could_not_read_all(instances: Instances, root: Path):
    request = created(instances)
    (root / request.name / layout.RECORD).write_text("{")
    assert instances.list_all() == ((), False)


# What lies about.


def test_a_directory_without_a_record_is_no_instance(instances: Instances, root: Path):
    request = a_request()
    (root / request.name).mkdir(parents=True)
    assert instances.observe(request.name) is None
    assert instances.list_ours() == ((), True)
    instances.create(request, threading.Event())
    assert seen(instances, request).state is InstanceState.RUNNING
    ended(instances, request)
    (root / request.name).mkdir()
    assert not instances.end(request.name)
    assert list(root.iterdir()) == []


def test_a_living_process_with_a_damaged_record_is_not_taken_for_absent(
    instances: Instances, root: Path
):
    request = created(instances)
    record = root / request.name / layout.RECORD
    kept = record.read_bytes()
    record.write_bytes(b"{")
    with pytest.raises(EnvironmentProviderError, match="is damaged"):
        instances.observe(request.name)
    with pytest.raises(EnvironmentProviderError, match="is damaged"):
        instances.create(request, threading.Event())
    assert not instances.list_ours().complete
    record.write_bytes(kept)
    assert instances.list_ours().complete


def test_a_create_that_loses_the_race_takes_what_the_winner_made(
    instances: Instances, monkeypatch: pytest.MonkeyPatch, root: Path
):
    request = created(instances)
    pid = process_of(root / request.name)
    answers = iter([False, True])
    monkeypatch.setattr(instances, "_is_taken", lambda _: next(answers))
    instances.create(request, threading.Event())
    assert process_of(root / request.name) == pid
    assert [one.name for one in root.iterdir()] == [request.name]


def test_nothing_is_left_open(instances: Instances):
    ended(instances, created(instances))
    before = open_descriptors()
    for _ in range(2):
        request = created(instances)
        instances.list_ours()
        ended(instances, request)
    with pytest.raises(EnvironmentProviderError):
        instances.create(
            a_request(local=LocalBlock(egress_address="203.0.113.7")), threading.Event()
        )
    assert open_descriptors() == before
    assert zombies() == []


def test_a_root_that_vanished_is_an_empty_one(instances: Instances, root: Path):
    created(instances)
    ended(instances, created(instances))
    pids = [process_of(one) for one in root.iterdir()]
    shutil.rmtree(root)
    assert instances.list_ours() == ((), True)
    for pid in pids:
        kill(pid)


def test_the_sweep_counts_from_the_clock(root: Path):
    class Later(SystemClock):
        def now(self):
            return super().now() + timedelta(hours=1)

    root.mkdir()
    (root / ".new-abc").mkdir()
    Instances(root, bind="127.0.0.1", cluster_id="cluster-1", clock=Later()).list_ours()
    assert list(root.iterdir()) == []

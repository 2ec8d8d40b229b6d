"""Ending the operator: by SIGTERM, by Ctrl-C, twice, and with --down-on-exit."""

import os
import re
import shutil
import signal
import socket
from pathlib import Path

import pytest

from tests.e2e.home import TOKEN, Home, Operator, a_local
from tests.e2e.origin import Origin
from tests.e2e.processes import children_of, identities, until

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_graceful_end_leaves_the_proxies(home: Home, origin: Origin, number: int):
    operator = home.operator()
    home.apply(a_local("one"), a_local("two"))
    home.wait_ready("one", "two")
    before = identities(home.launchers())
    assert [one for one in children_of(operator.pid) if one.state == "Z"] == []
    url = operator.lease()["proxy"]["url"]
    assert operator.stop(number) == 0
    assert "Traceback" not in operator.output()
    assert identities(home.launchers()) == before
    assert origin.fetch(origin.http, url)["path"] == "/page"
    assert home.are_ready("one", "two")


def test_a_request_under_way_is_answered_before_the_end(home: Home):
    operator = home.operator()
    body = b'{"target": "a.example"}'
    head = (
        f"POST /v1/leases HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", operator.ports["discovery"]), timeout=10) as client:
        client.sendall(head.encode() + body[:5])
        # Answered on another connection, so the first one has been read too.
        assert operator.ask("GET", "/healthz").status == 200
        operator.process.send_signal(signal.SIGTERM)
        until(lambda: operator.said("stopping"), "it stops")
        assert operator.process.poll() is None
        client.sendall(body[5:])
        answer = b""
        while chunk := client.recv(4096):
            answer += chunk
    status = answer.split(b" ")[1]
    assert status in {b"409", b"503"}
    assert answer.endswith(b"}")
    assert operator.process.wait(timeout=5) == 0


def test_a_second_signal_ends_it_at_once(home: Home):
    operator = home.operator("--down-on-exit")
    home.apply(a_local("one"))
    home.wait_ready("one")
    [process] = home.launchers()
    # Stopped, it cannot obey, and deleting it takes a while.
    os.kill(process.pid, signal.SIGSTOP)
    operator.process.send_signal(signal.SIGTERM)
    until(lambda: "deleting every Proxy" in operator.output(), "it has taken the first")
    until(lambda: home.proxies()["one"].metadata.is_deleting, "it is being deleted")
    assert operator.process.poll() is None
    assert operator.stop(signal.SIGTERM, within=1.0) == 128 + signal.SIGTERM
    # What was left is what the next one takes up.
    os.kill(process.pid, signal.SIGCONT)
    assert home.proxies()["one"].metadata.is_deleting
    home.operator()
    until(lambda: home.proxies() == {} and home.launchers() == [], "the next one ends it")
    assert home.instance_names() == []


def quickstart(home: Home) -> tuple[Path, int]:
    """Copy the example with ports that are free now: its own are for one run on a machine."""
    with socket.socket() as proxy, socket.socket() as health:
        proxy.bind(("127.0.0.1", 0))
        health.bind(("127.0.0.1", 0))
        ports = {"28731": proxy.getsockname()[1], "8081": health.getsockname()[1]}
    copied = home.root / "quickstart"
    shutil.copytree(QUICKSTART, copied)
    for file in copied.iterdir():
        text = re.sub("|".join(ports), lambda m: str(ports[m[0]]), file.read_text())
        file.write_text(text.replace("interval: 10s", "interval: 1s\n    timeout: 1s"))
    return copied, ports["8081"]


def start_quickstart(home: Home) -> Operator:
    copied, health = quickstart(home)
    flags = ("--apply", str(copied), "--down-on-exit", "--health-probe-bind", f"127.0.0.1:{health}")
    return home.operator(*flags)


def test_ctrl_c_on_the_quickstart_ends_everything(home: Home):
    operator = start_quickstart(home)
    until(lambda: "3 of 3 proxies are Ready" in operator.output(), "all Ready", within=30)
    assert len(home.launchers()) == 2
    # As a terminal does: to the whole foreground process group.
    os.killpg(operator.pid, signal.SIGINT)
    assert operator.process.wait(timeout=20) == 0
    assert operator.out_path.read_text().endswith("no Proxy is left\n")
    assert home.proxies() == {}
    assert home.launchers() == []
    assert home.instance_names() == []


@pytest.mark.slow
def test_ctrl_c_before_anything_is_ready_ends_everything(home: Home):
    operator = start_quickstart(home)
    until(home.instance_names, "the first instance is on its way", every=0.005)
    os.killpg(operator.pid, signal.SIGINT)
    assert operator.process.wait(timeout=30) == 0
    assert home.proxies() == {}
    assert home.launchers() == []
    assert home.instance_names() == []


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


@pytest.mark.slow
def test_descriptors_and_threads_do_not_grow(home: Home):
    operator = home.operator()
    names = ("a", "b", "c", "d")

    def cycle() -> None:
        home.apply(*(a_local(name) for name in names))
        home.wait_ready(*names)
        for _ in range(20):
            lease = operator.lease()
            assert operator.ask("DELETE", f"/v1/leases/{lease['leaseID']}").status == 204
        for name in names:
            home.delete(name)
        until(lambda: home.proxies() == {}, "all gone")

    cycle()
    files, workers = open_files(operator.pid), threads(operator.pid)
    for _ in range(13):
        cycle()
    # Connections of the last requests may be closing yet.
    until(lambda: open_files(operator.pid) <= files + 2, "descriptors are given back")
    # The pool of asyncio.to_thread grows to its bound: min(32, processors + 4).
    assert threads(operator.pid) <= max(workers, 8 + min(32, (os.cpu_count() or 1) + 4))
    assert [one for one in children_of(operator.pid) if one.state == "Z"] == []

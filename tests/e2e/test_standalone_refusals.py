"""Starts and commands that must be refused: one clear sentence, an exit code, nothing half-done."""

import ctypes
import json
import os
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.home import ANY_PORTS, COMMAND, TOKEN, Ended, Home, a_local, as_yaml, environment

CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
PR_CAPBSET_DROP = 24


def bow_to_permissions() -> None:
    """Make root heed permission bits, as everybody else does (capabilities(7))."""
    libc = ctypes.CDLL(None)
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def start(home: Home, *flags: str, token: str = TOKEN, data_dir: Path | None = None) -> Ended:
    """Run an operator that should refuse to; later flags win over the usual ones."""
    place = str(data_dir or home.data_dir)
    ended = subprocess.run(
        [COMMAND, "run", "--standalone", "--data-dir", place, *ANY_PORTS, *flags],
        capture_output=True,
        text=True,
        env=environment({"DISCOVERY_TOKEN": token}),
        cwd=home.root,
        timeout=20,
        check=False,
        preexec_fn=bow_to_permissions,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def sentence(ended: Ended, *, code: int = 1) -> str:
    """Return the one sentence that a refusal consists of."""
    assert ended.code == code, ended
    assert ended.out == ""
    lines = [line for line in ended.err.splitlines() if not is_record(line)]
    assert len(lines) == 1, ended.err
    assert lines[0].startswith("error: ")
    assert "Traceback" not in ended.err
    assert "unexpected" not in lines[0]
    return lines[0].removeprefix("error: ")


def is_record(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


@pytest.mark.parametrize(
    "flag",
    [
        "--discovery-bind",
        pytest.param("--metrics-bind", marks=pytest.mark.slow),
        pytest.param("--health-probe-bind", marks=pytest.mark.slow),
    ],
)
def test_a_port_that_is_taken(home: Home, taken: int, flag: str):
    home.apply(a_local("p1"))
    said = sentence(start(home, flag, f"127.0.0.1:{taken}"))
    assert f"127.0.0.1:{taken}" in said
    assert home.instance_names() == []
    assert home.proxies()["p1"].metadata.finalizers == ()
    assert not home.store.is_operator_running()


@pytest.mark.parametrize("flag", ["--discovery-bind", "--metrics-bind"])
def test_a_port_that_is_taken_leaves_nothing_on_disk(home: Home, taken: int, flag: str):
    ended = start(home, flag, f"127.0.0.1:{taken}", token="")
    assert f"127.0.0.1:{taken}" in sentence(ended)
    # Neither a warning about a start that did not take place.
    assert ended.err.count("\n") == 1
    assert not home.data_dir.exists()


def test_a_data_directory_that_is_a_file(home: Home):
    home.data_dir.write_text("mine")
    assert "is not a directory" in sentence(start(home))
    assert home.data_dir.read_text() == "mine"


def test_a_data_directory_that_cannot_be_written(home: Home):
    closed = home.root / "closed"
    closed.mkdir(mode=0o500)
    said = sentence(start(home, data_dir=closed / "data"))
    assert str(closed / "data") in said
    assert "permission denied" in said.lower()
    assert list(closed.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_data_directory_of_another_user(home: Home):
    home.data_dir.mkdir(mode=0o700)
    os.chown(home.data_dir, 12345, 12345)
    said = sentence(start(home))
    assert "belongs to user id 12345" in said
    assert list(home.data_dir.iterdir()) == []


def test_a_second_operator_on_the_same_directory(home: Home):
    first = home.operator()
    # On ports of its own, and on those of the first.
    same = (f"--{name}-bind" for name in ("discovery", "metrics"))
    same_ports = [w for flag in same for w in (flag, f"127.0.0.1:{first.ports[flag[2:-5]]}")]
    for flags in ((), same_ports):
        said = sentence(start(home, *flags))
        assert f"pid {first.pid}" in said
        assert str(home.data_dir) in said
    assert first.ask("GET", "/v1/leases").status == 200
    assert first.stop() == 0


def test_a_store_of_a_newer_version(home: Home):
    home.apply(a_local("p1"))
    home.close_store()
    store = home.data_dir / "store.sqlite3"
    with sqlite3.connect(store) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = store.read_bytes()
    assert "newer version (schema 99" in sentence(start(home))
    for command in (("apply", "-f", "-"), ("down",)):
        said = sentence(home.cli(*command, stdin=as_yaml(a_local("p2"))))
        assert "newer version (schema 99" in said
    assert store.read_bytes() == before


@pytest.mark.slow
def test_a_store_that_is_none(home: Home):
    home.data_dir.mkdir(mode=0o700)
    (home.data_dir / "store.sqlite3").write_bytes(b"not a database at all, but long enough" * 40)
    assert "is not a store of proxy-operator" in sentence(start(home))


GOOD = as_yaml(a_local("good"))
MANIFESTS = {
    "broken": ("a: b: c\n", "line 4, column 5"),
    "kind": (as_yaml({**a_local("bad"), "kind": "Proxxy"}), "Proxxy"),
    "field": (as_yaml(a_local("bad", maxLease=3)), "spec.maxLease"),
    "duration": (as_yaml(a_local("bad", healthCheck={"interval": "soon"})), "interval"),
    "name": (as_yaml(a_local("Not_A_Name")), "metadata.name"),
    "text": ("just text\n", "not an object"),
}


@pytest.mark.parametrize("fault", MANIFESTS)
def test_a_manifest_with_a_fault_applies_nothing_of_its_file(home: Home, fault: str):
    text, hint = MANIFESTS[fault]
    file = home.root / "m.yaml"
    file.write_text(f"{GOOD}---\n{text}" if fault != "broken" else f"kind: Proxy\n---\n#\n{text}")
    said = sentence(home.cli("apply", "-f", str(file)))
    assert str(file) in said
    assert hint in said
    assert home.proxies() == {}


def test_a_run_that_is_to_apply_a_faulty_manifest(home: Home):
    file = home.root / "m.yaml"
    file.write_text(f"{MANIFESTS['field'][0]}---\n{GOOD}")
    ended = start(home, "--apply", str(file))
    assert str(file) in ended.err
    assert sentence(Ended(ended.code, "", ended.err))
    assert home.proxies() == {}
    assert home.instance_names() == []


@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        (("--gc-interval", "soon"), "--gc-interval"),
        (("--discovery-bind", "8090"), "--discovery-bind"),
    ],
)
def test_an_option_that_makes_no_sense(home: Home, flags: tuple[str, ...], hint: str):
    said = sentence(start(home, *flags), code=2)
    assert hint in said
    assert flags[1] in said
    assert not home.data_dir.exists()


def test_an_open_api_beyond_loopback(home: Home):
    said = sentence(start(home, "--discovery-bind", ":0", token=""), code=2)
    assert "DISCOVERY_TOKEN" in said
    assert not home.data_dir.exists()


@pytest.mark.slow
def test_a_token_file_that_is_missing(home: Home):
    missing = home.root / "token"
    said = sentence(start(home, "--discovery-token-file", str(missing)), code=2)
    assert str(missing) in said
    assert not home.data_dir.exists()

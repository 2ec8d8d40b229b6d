"""The user data of examples/gcp in the programs that will read it: cloud-init, squid, its helper.

Needs the packages cloud-init, squid and openssl. No instance is booted here.
"""

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from hack.user_data import NO_HASH, PORT, USERNAME, USERS_FILE, cloud_config

from tests.integration.test_squid import SQUID, a_free_port, complaints_of
from tests.unit.adapters.providers.local.targets import basic, connected, exchange, status

PROGRAMS = {name: shutil.which(name) for name in ("cloud-init", "openssl")}
for _name, _found in PROGRAMS.items():
    if _found is None:
        pytest.fail(f"install the package {_name}: these tests run it", pytrace=False)

UNIT = Path("/lib/systemd/system/squid.service")
"""How the package starts squid, and so how an instance does."""
PASSWORD = "p@s:s/#% wörd"
# No such address is ever reached: squid answers 403 before it connects, or 407 before that.
ASK = b"GET http://127.0.0.1:9/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"


def output(*command: str, stdin: str = "") -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files() -> dict[str, str]:
    return {file["path"]: file["content"] for file in yaml.safe_load(cloud_config())["write_files"]}


def a_hash(password: str) -> str:
    """What docs/clouds-gcp.md tells people to run; `-stdin` stands for the terminal."""
    return output("openssl", "passwd", "-6", "-stdin", stdin=password).strip()


def test_cloud_init_takes_it(tmp_path: Path) -> None:
    file = tmp_path / "user-data"
    file.write_text(cloud_config())
    said = output("cloud-init", "schema", "--config-file", str(file))
    assert "Valid" in said


def test_cloud_init_installs_then_writes_then_starts() -> None:
    final = yaml.safe_load(Path("/etc/cloud/cloud.cfg").read_text())["cloud_final_modules"]
    names = [name.replace("_", "-") for name in final]
    steps = ("package-update-upgrade-install", "write-files-deferred", "scripts-user")
    assert sorted(steps, key=names.index) == list(steps)


def test_squid_reads_the_configuration_without_complaint(tmp_path: Path) -> None:
    conf = tmp_path / "squid.conf"
    conf.write_text(files()["/etc/squid/squid.conf"])
    assert complaints_of(conf) == (0, [])


class Booted(NamedTuple):
    """A squid started as the package's unit does, and what it told systemd."""

    port: int
    told: str


@contextlib.contextmanager
def booted(users: str) -> Iterator[Booted]:
    """Run what the user data leaves behind, with a free port and files in a directory of ours."""
    port = a_free_port()
    # Not tmp_path: squid's workers run as another user, who may not enter that.
    with (
        tempfile.TemporaryDirectory() as name,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd,
    ):
        directory = Path(name)
        directory.chmod(0o755)
        (directory / "users").write_text(users)
        conf = files()["/etc/squid/squid.conf"]
        assert f"http_port {PORT}\n" in conf
        conf = conf.replace(f"http_port {PORT}\n", f"http_port 127.0.0.1:{port}\n")
        (directory / "squid.conf").write_text(conf.replace(USERS_FILE, f"{directory}/users"))
        systemd.bind(f"{directory}/notify")
        (directory / "notify").chmod(0o777)
        systemd.settimeout(20)
        own = ("-f", f"{directory}/squid.conf", "-n", f"boot{port}")
        process = subprocess.Popen(
            [*started_by_unit(), *own],
            env={**os.environ, "NOTIFY_SOCKET": f"{directory}/notify"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        try:
            yield Booted(port, systemd.recv(4096).decode())
        finally:
            # The group: squid's worker outlives the process that watches over it.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for left in Path("/dev/shm").glob(f"boot{port}-*.shm"):
                left.unlink()


def started_by_unit() -> list[str]:
    lines = UNIT.read_text().splitlines()
    command = next(line for line in lines if line.startswith("ExecStart="))
    return shlex.split(command.partition("=")[2])


def answer(port: int, headers: bytes = b"") -> int:
    for _ in range(100):
        with contextlib.suppress(OSError), connected(port):
            break
        threading.Event().wait(0.05)
    return status(exchange(port, ASK + headers + b"\r\n"))


def test_it_starts_as_the_package_does_and_knows_who_has_a_hash() -> None:
    users = files()[USERS_FILE].replace(NO_HASH, a_hash(PASSWORD))
    with booted(users) as squid:
        assert "READY=1" in squid.told
        assert answer(squid.port) == 407
        assert answer(squid.port, basic(USERNAME, "wrong")) == 407
        # Known now, and kept out of the instance itself.
        assert answer(squid.port, basic(USERNAME, PASSWORD)) == 403


def test_as_it_stands_in_the_example_nobody_can_log_in() -> None:
    with booted(files()[USERS_FILE]) as squid:
        for password in ("", NO_HASH, NO_HASH[1:], "*0", "change me: any text will do"):
            assert answer(squid.port, basic(USERNAME, password)) == 407


def test_squid_is_the_one_of_the_package() -> None:
    assert started_by_unit()[0] == SQUID

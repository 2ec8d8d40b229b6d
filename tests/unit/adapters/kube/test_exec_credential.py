"""Credential plugins: real programs, run for real."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvloop

from proxy_operator.adapters.kube import exec_plugin
from proxy_operator.adapters.kube.access import ClusterAccess, CredentialsError
from proxy_operator.adapters.kube.kubeconfig import kubeconfig_access
from tests.unit.adapters.kube.clusters import (
    HandClock,
    a_kubeconfig,
    an_api_server,
    an_exec,
    ask,
    base64_of,
)

V1 = "client.authentication.k8s.io/v1"
BETA = "client.authentication.k8s.io/v1beta1"

# Answers with what stands beside it, and notes that it ran.
PLUGIN = """
import os, sys, time
here = os.path.dirname(sys.argv[0])
with open(here + "/runs", "a") as runs:
    runs.write("x")
with open(here + "/answer") as answer:
    time.sleep(0.1)
    print(answer.read())
"""


class Lab:
    """A kubeconfig whose user has a plugin."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = HandClock()
        self.cluster: dict[str, Any] = {}

    def access(self, source: str = PLUGIN, **members: Any) -> ClusterAccess:
        user = an_exec(self.directory / "plugin", source, **members)
        path = a_kubeconfig(self.directory / "config", cluster=self.cluster, user=user)
        return kubeconfig_access([path], None, {"PATH": "/usr/bin:/bin"}, self.clock)

    def answer(self, *, api_version: str = V1, **status: Any) -> None:
        document = {"apiVersion": api_version, "kind": "ExecCredential", "status": status}
        (self.directory / "answer").write_text(json.dumps(document))

    def after(self, seconds: float) -> str:
        return (self.clock.now() + timedelta(seconds=seconds)).isoformat()

    @property
    def runs(self) -> int:
        file = self.directory / "runs"
        return len(file.read_text()) if file.exists() else 0


@pytest.fixture
def lab(tmp_path) -> Lab:
    return Lab(tmp_path)


async def authorization_of(access: ClusterAccess) -> str | None:
    return (await access.credentials.current()).headers.get("Authorization")


async def test_requests_share_one_run(lab):
    lab.answer(token="one")
    access = lab.access()
    assert lab.runs == 0
    found = await asyncio.gather(*(access.credentials.current() for _ in range(8)))
    assert [i.headers["Authorization"] for i in found] == ["Bearer one"] * 8
    lab.clock.move(86_400)
    assert await authorization_of(access) == "Bearer one"
    assert lab.runs == 1


async def test_a_credential_is_replaced_before_it_expires(lab):
    lab.answer(token="one", expirationTimestamp=lab.after(100), api_version=BETA)
    access = lab.access(apiVersion=BETA, interactiveMode=None)
    await access.credentials.current()
    lab.clock.move(89)
    assert await authorization_of(access) == "Bearer one"
    lab.answer(token="two", api_version=BETA)
    lab.clock.move(2)
    assert await authorization_of(access) == "Bearer two"
    assert lab.runs == 2


async def test_a_401_runs_the_plugin_once_for_all(lab):
    lab.answer(token="one")
    access = lab.access()
    refused = await access.credentials.current()
    lab.clock.move(6)
    lab.answer(token="two")
    told = await asyncio.gather(*(access.credentials.refresh(refused) for _ in range(4)))
    assert told == [True] * 4
    assert await authorization_of(access) == "Bearer two"
    assert lab.runs == 2


async def test_a_server_that_refuses_everything_does_not_hammer_the_plugin(lab):
    lab.answer(token="one")
    access = lab.access()
    for _ in range(3):
        assert not await access.credentials.refresh(await access.credentials.current())
    assert lab.runs == 1
    lab.clock.move(6)
    assert not await access.credentials.refresh(await access.credentials.current())
    assert lab.runs == 2


async def test_a_credential_born_expired_does_not_hammer_the_plugin(lab):
    lab.answer(token="one", expirationTimestamp=lab.after(-5))
    access = lab.access()
    for _ in range(3):
        assert await authorization_of(access) == "Bearer one"
    assert lab.runs == 1


async def test_a_failure_is_shared_and_then_tried_again(lab):
    access = lab.access()  # there is no answer to print
    found = await asyncio.gather(
        *(access.credentials.current() for _ in range(4)), return_exceptions=True
    )
    assert all("failed with exit code 1: Traceback" in str(e) for e in found)
    assert all(isinstance(e, CredentialsError) for e in found)
    assert lab.runs == 1
    lab.answer(token="one")
    lab.clock.move(6)
    assert await authorization_of(access) == "Bearer one"


async def test_a_client_certificate_from_a_plugin(lab, authority: trustme.CA):
    def issue(name: str) -> dict[str, str]:
        own = authority.issue_cert("me@example.com", common_name=name)
        return {
            "clientCertificateData": own.cert_chain_pems[0].bytes().decode(),
            "clientKeyData": own.private_key_pem.bytes().decode(),
        }

    async with an_api_server(authority) as server:
        ca = base64_of(authority.cert_pem.bytes())
        lab.cluster = {"server": server, "certificate-authority-data": ca}
        lab.answer(**issue("first"), expirationTimestamp=lab.after(60))
        access = lab.access()
        before = await access.credentials.current()
        assert "first" in await ask(access, before)
        assert "Authorization" not in before.headers
        lab.answer(**issue("second"))
        lab.clock.move(60)
        after = await access.credentials.current()
        assert after.ssl is not before.ssl
        assert "second" in await ask(access, after)


async def test_what_a_plugin_is_told(lab, authority: trustme.CA):
    source = """
import json, os, sys
token = "-".join([*sys.argv[1:], os.environ["REGION"], os.environ["PATH"]])
assert not sys.stdin.read()
with open(os.path.dirname(sys.argv[0]) + "/info", "w") as file:
    file.write(os.environ["KUBERNETES_EXEC_INFO"])
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
print(json.dumps({**info, "status": {"token": token}}))
"""
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": 7}}
    lab.cluster = {
        "tls-server-name": "kube",
        "certificate-authority": "ca",
        "proxy-url": "http://192.0.2.3:1",
        "extensions": [{"name": "other", "extension": 1}, extension],
    }
    (lab.directory / "ca").write_bytes(authority.cert_pem.bytes())
    more = {"args": ["a", "b"], "env": [{"name": "REGION", "value": "eu"}], "command": "./plugin"}
    access = lab.access(source, **more, provideClusterInfo=True)
    assert await authorization_of(access) == "Bearer a-b-eu-/usr/bin:/bin"
    spec = json.loads((lab.directory / "info").read_text())["spec"]
    assert spec == {
        "interactive": False,
        "cluster": {
            "server": "https://192.0.2.1:6443",
            "tls-server-name": "kube",
            "certificate-authority-data": base64_of(authority.cert_pem.bytes()),
            "proxy-url": "http://192.0.2.3:1",
            "config": {"audience": 7},
        },
    }
    await authorization_of(lab.access(source, **more))
    assert json.loads((lab.directory / "info").read_text())["spec"] == {"interactive": False}


async def test_a_plugin_on_the_path_of_its_environment(lab):
    lab.answer(token="one")
    path = [{"name": "PATH", "value": f"{lab.directory}:/usr/bin:/bin"}]
    assert await authorization_of(lab.access(command="plugin", env=path)) == "Bearer one"


async def test_a_plugin_that_is_not_installed(lab):
    access = lab.access(command="no-such-plugin", installHint="get it\n  from your vendor")
    with pytest.raises(CredentialsError) as caught:
        await access.credentials.current()
    assert str(caught.value) == (
        f'{lab.directory}/config, user "lab", exec: the plugin no-such-plugin cannot be run: '
        "no such file or directory (get it from your vendor)"
    )


SECRET = "s3cret"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("", "printed no ExecCredential: Input data was truncated"),
        (SECRET, "printed no ExecCredential: JSON is malformed"),
        (f'{{"status": "{SECRET}"}}', "printed no ExecCredential: Expected `object"),
        ('{"kind": "Secret"}', "printed an object that is no ExecCredential"),
        (
            f'{{"kind": "ExecCredential", "apiVersion": "{BETA}"}}',
            f"must answer in {V1}, its answer has another apiVersion",
        ),
        (f'{{"kind": "ExecCredential", "apiVersion": "{V1}"}}', "printed neither a token nor"),
        ({"token": f"{SECRET}\nx"}, "printed a token that cannot stand in a header"),
        ({"token": SECRET, "clientKeyData": SECRET}, "without the other"),
        (
            {"clientCertificateData": SECRET, "clientKeyData": SECRET},
            "printed an unusable client certificate: no client certificate and key in PEM",
        ),
        ({"token": "x", "expirationTimestamp": SECRET}, "printed no ExecCredential: Invalid RFC"),
        (
            {"token": "x", "expirationTimestamp": "2026-01-01T00:00:00"},
            "printed no ExecCredential: Expected `datetime` with a timezone",
        ),
    ],
)
async def test_a_wrong_answer_is_told_without_its_content(lab, answer, sentence):
    if isinstance(answer, str):
        (lab.directory / "answer").write_text(answer)
    else:
        lab.answer(**answer)
    with pytest.raises(CredentialsError) as caught:
        await lab.access().credentials.current()
    assert sentence in str(caught.value)
    assert SECRET not in str(caught.value)


async def test_the_end_of_what_a_plugin_complains_about_is_quoted(lab):
    source = "import sys; sys.stderr.write('no' * 1_000_000 + '\\n\\x1b[1mlog in\\n'); sys.exit(3)"
    with pytest.raises(CredentialsError) as caught:
        await lab.access(source).credentials.current()
    message = str(caught.value)
    assert "failed with exit code 3: …" in message
    assert message.endswith("log in")
    assert message.isprintable()
    assert len(message) < 1_000


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the file system has no events
            await asyncio.sleep(0.02)


SLEEPER = """
import os, subprocess, sys, time
child = subprocess.Popen(["sleep", "60"])
with open(os.path.dirname(sys.argv[0]) + "/new", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename(file.name, os.path.dirname(sys.argv[0]) + "/pids")
time.sleep(60)
"""


async def test_a_plugin_that_hangs_is_ended_with_its_children(lab, monkeypatch):
    monkeypatch.setattr(exec_plugin, "_TIMEOUT_SECONDS", 1.5)
    with pytest.raises(CredentialsError, match=r"gave no credential within 1\.5 seconds"):
        await lab.access(SLEEPER).credentials.current()
    pids = [int(pid) for pid in (lab.directory / "pids").read_text().split()]
    await wait_until(lambda: not any(map(is_alive, pids)))


HELPED = """
import subprocess
helper = subprocess.Popen(["sleep", "60"])
with open(os.path.dirname(sys.argv[0]) + "/pid", "w") as file:
    file.write(str(helper.pid))
"""


async def test_a_helper_left_in_the_background_keeps_nobody_waiting(lab):
    lab.answer(token="one")
    try:
        assert await authorization_of(lab.access(PLUGIN + HELPED)) == "Bearer one"
    finally:
        helper = int((lab.directory / "pid").read_text())
        await asyncio.sleep(0.2)  # a signal takes a moment to arrive
        assert is_alive(helper), "it is not ours to end"
        os.kill(helper, signal.SIGKILL)


async def test_a_cancelled_request_leaves_no_plugin_and_lets_the_next_one_run(lab):
    access = lab.access(SLEEPER)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(access.credentials.current())
        await wait_until((lab.directory / "pids").exists)
        second = group.create_task(access.credentials.current())
        await asyncio.sleep(0)
        lab.answer(token="one")
        (lab.directory / "plugin").write_text(
            (lab.directory / "plugin").read_text().splitlines()[0] + "\n" + PLUGIN
        )
        first.cancel()
        with suppress(asyncio.CancelledError):
            await first
    assert second.result().headers["Authorization"] == "Bearer one"
    pids = [int(pid) for pid in (lab.directory / "pids").read_text().split()]
    await wait_until(lambda: not any(map(is_alive, pids)))


def test_plugins_run_on_uvloop_too(lab, monkeypatch):
    """The operator's loop where it installs; the two start and end processes in their own ways."""
    monkeypatch.setattr(exec_plugin, "_TIMEOUT_SECONDS", 1.5)
    lab.answer(token="one")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(authorization_of(lab.access())) == "Bearer one"
        with pytest.raises(CredentialsError, match="no such file or directory"):
            runner.run(authorization_of(lab.access(command="no-such-plugin")))
        with pytest.raises(CredentialsError, match="no credential within"):
            runner.run(authorization_of(lab.access(SLEEPER)))

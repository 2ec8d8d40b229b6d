"""describe: all of a Proxy, none of a Secret's data, nothing that steers a terminal."""

from proxy_operator.adapters.embedded.data_dir import DataDir
from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.events import EventLog
from proxy_operator.controllers.events import EventQueue
from proxy_operator.domain.event import BECAME_HEALTHY
from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.objects import ObjectKey
from tests.unit.cli.conftest import SECRET, Shell, a_proxy_text
from tests.unit.cli.test_get import make_ready


def test_a_proxy_in_full(shell: Shell):
    shell("apply", "-f", "-", stdin=a_proxy_text())
    make_ready(shell, "p1")
    ended = shell("describe", "proxy", "p1")
    assert ended.code == 0
    lines = ended.out.split("\n")
    for line in (
        "Name:               p1",
        "Labels:             team=a",
        "Annotations:        <none>",
        "Phase:              Ready",
        "Address:            127.0.0.1 port 3128",
        "Provider ID:        local/proxy-abc",
        "  provider: local",
        "    region: eu",
        "Events:             <none>",
    ):
        assert line in lines
    [condition] = [line for line in lines if "Provisioned" in line]
    assert "instance runs\\nnext line" in condition


def test_events_with_age_and_count(shell: Shell):
    shell("apply", "-f", "-", stdin=a_proxy_text())

    async def act(home):
        proxy = await home.client.get(Proxy, ObjectKey("default", "p1"))
        database = Database(DataDir(shell.data_dir).store_path)
        await database.open(create=False)
        sink = EventQueue(EventLog(database, SystemClock()), SystemClock())
        for _ in range(3):
            sink.record(proxy, BECAME_HEALTHY, "probes succeed \x1b[31m")
        await sink._flush()
        await database.close()

    shell.with_home(act)
    out = shell("describe", "proxy/p1").out
    [line] = [line for line in out.split("\n") if "BecameHealthy" in line]
    assert line.split()[0] == "Normal"
    assert "(x3 over" in line
    assert line.endswith("probes succeed \\x1b[31m")


def test_a_secret_by_its_sizes(shell: Shell):
    shell("apply", "-f", "-", stdin=SECRET)
    out = shell("describe", "secret", "s1").out
    assert "  password: 15 bytes\n  username: 7 bytes\n" in out
    assert "hunter2" not in out


KUBECTLS_COPY = """
apiVersion: v1
kind: Secret
metadata:
  name: s1
  annotations:
    team: a
    kubectl.kubernetes.io/last-applied-configuration: '{"stringData":{"password":"hunter2"}}'
stringData: {password: hunter2, username: crawler}
"""


def test_what_kubectl_keeps_of_a_secret_is_not_shown(shell: Shell):
    shell("apply", "-f", "-", stdin=KUBECTLS_COPY)
    for words in (
        ("describe", "secret", "s1"),
        ("get", "secret", "s1", "-o", "yaml"),
        ("get", "secrets", "-o", "json"),
    ):
        out = shell(*words).out
        assert "hunter2" not in out
        assert "team" in out


def test_absence_and_vagueness(shell: Shell):
    shell("apply", "-f", "-", stdin=a_proxy_text())
    assert shell("describe", "proxy").code == 2
    ended = shell("describe", "proxy", "nope", "p1")
    assert ended.code == 1
    assert ended.err == 'error: proxies "nope" not found in namespace default\n'
    assert ended.out.startswith("Name:               p1")

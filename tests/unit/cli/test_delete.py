"""delete: says what goes, waits for it, and says when nobody makes it go."""

from proxy_operator.domain.condition import ConditionStatus, ConditionType, with_condition
from proxy_operator.domain.names import FINALIZER
from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.objects import MetadataPatch, ObjectKey, Preconditions
from tests.builders import EPOCH
from tests.unit.cli.conftest import SECRET, Shell, a_proxy_text


def add_finalizer(shell: Shell, name: str, finalizer: str = FINALIZER) -> None:
    async def act(home):
        key = ObjectKey("default", name)
        proxy = await home.client.get(Proxy, key)
        await home.client.patch_metadata(
            Proxy,
            key,
            Preconditions(proxy.metadata.uid),
            MetadataPatch(finalizers=[finalizer]),
        )

    shell.with_home(act)


def test_by_name_in_each_way(shell: Shell):
    text = "---".join([*(a_proxy_text(name) for name in ("p1", "p2", "p3")), SECRET])
    shell("apply", "-f", "-", stdin=text)
    assert shell("delete", "proxy", "p1", "p2").out == (
        'proxy.crawl.example.com "p1" deleted\nproxy.crawl.example.com "p2" deleted\n'
    )
    assert shell("delete", "proxy/p3", "secret/s1").out == (
        'proxy.crawl.example.com "p3" deleted\nsecret "s1" deleted\n'
    )
    assert shell("get", "proxies", "-o", "name").out == ""


def test_by_manifest(shell: Shell):
    file = shell.write("m.yaml", a_proxy_text() + "---" + SECRET)
    shell("apply", "-f", file)
    assert shell("delete", "-f", file).code == 0
    ended = shell("delete", "-f", file)
    assert ended.code == 1
    assert ended.err == (
        'error: proxies "p1" not found in namespace default\n'
        'error: secrets "s1" not found in namespace default\n'
    )


def test_waiting_ends_at_the_timeout_and_says_that_nobody_works(shell: Shell):
    shell("apply", "-f", "-", stdin=a_proxy_text())
    add_finalizer(shell, "p1")
    ended = shell("delete", "proxy", "p1", "--timeout", "50ms")
    assert ended.code == 1
    assert ended.out == ""
    assert "no operator runs" in ended.err
    assert ended.err.endswith("error: timed out while waiting for p1 to go\n")
    ended = shell("delete", "proxy", "p1", "--no-wait")
    assert ended == (0, 'proxy.crawl.example.com "p1" is being deleted\n', "")
    assert shell("get", "proxies", "-o", "name").out == "proxy.crawl.example.com/p1\n"


def test_waiting_names_the_finalizer_that_nobody_here_removes(shell: Shell):
    shell("apply", "-f", "-", stdin=a_proxy_text())
    add_finalizer(shell, "p1", "a.example/x")
    ended = shell("delete", "proxy", "p1", "--timeout", "50ms")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        "waiting for p1: the finalizer a.example/x of somebody else is still set\n"
        "error: timed out while waiting for p1 to go"
        " (the finalizer a.example/x of somebody else is still set)\n"
    )


def test_waiting_says_what_holds_the_instance_up(shell: Shell):
    shell("apply", "-f", "-", stdin=a_proxy_text())
    add_finalizer(shell, "p1")
    shell("delete", "proxy", "p1", "--no-wait")

    async def hold_up(home):
        proxy = (await home.client.get(Proxy, ObjectKey("default", "p1"))).draft()
        proxy.status.conditions = with_condition(
            (),
            ConditionType.PROVISIONED,
            status=ConditionStatus.TRUE,
            reason="Provisioned",
            message="ProviderError: deletion waits: the account may not delete instances",
            observed_generation=1,
            now=EPOCH,
        )
        await home.client.patch_status(proxy)

    shell.with_home(hold_up)
    ended = shell("delete", "proxy", "p1", "--timeout", "500ms")
    assert ended.code == 1
    lines = ended.err.splitlines()
    assert lines[0] == "waiting for p1: the account may not delete instances"
    assert lines.count(lines[0]) == 1
    assert lines[-1] == (
        "error: timed out while waiting for p1 to go (the account may not delete instances)"
    )


def test_the_variable_turns_waiting_off(shell: Shell, monkeypatch):
    shell("apply", "-f", "-", stdin=a_proxy_text())
    add_finalizer(shell, "p1")
    monkeypatch.setenv("PROXY_OPERATOR_WAIT", "false")
    assert shell("delete", "proxy", "p1").code == 0


def test_a_file_to_delete_is_never_taken_from_a_variable(shell: Shell, monkeypatch):
    file = shell.write("m.yaml", a_proxy_text())
    monkeypatch.setenv("PROXY_OPERATOR_FILENAME", file)
    assert shell("apply").code == 0
    assert shell("delete").code == 2
    assert shell("get", "proxies", "-o", "name").out == "proxy.crawl.example.com/p1\n"


def test_usage_errors(shell: Shell):
    assert shell("delete").code == 2
    assert shell("delete", "proxy").code == 2
    assert shell("delete", "proxy", "p1", "-f", "x").code == 2
    assert shell("delete", "pods", "p1").code == 2

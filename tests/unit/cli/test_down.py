"""down: names what it waits for; with real instances it is in the e2e tests."""

import sys

from proxy_operator.adapters.providers.local.provider import LocalProvider
from proxy_operator.domain.instance import Instance, InstanceState
from proxy_operator.domain.names import owner_labels
from proxy_operator.domain.proxy import Proxy
from proxy_operator.provisioning.contract import InstanceList
from proxy_operator.provisioning.errors import EnvironmentProviderError
from tests.builders import EPOCH, an_external
from tests.unit.cli.conftest import SECRET, Shell


def create(shell: Shell, name: str, *finalizers: str) -> None:
    # External ones: a managed one would be given a real instance.
    shell("apply", "-f", "-", stdin=SECRET)
    proxy = an_external(name, meta={"finalizers": finalizers})
    shell.with_home(lambda home: home.client.create(proxy))


def test_a_foreign_finalizer_is_named(shell: Shell):
    create(shell, "gone")
    create(shell, "kept", "a.example/x")
    ended = shell("down", "--timeout", "2s", "--log-level", "error")
    assert ended.code == 1
    assert sorted(ended.out.splitlines()) == [
        'proxy.crawl.example.com "gone" deleted',
        "waiting for kept: the finalizer a.example/x of somebody else is still set",
    ]
    assert ended.err == (
        "error: timed out while waiting for kept to go"
        " (the finalizer a.example/x of somebody else is still set); run `down` again\n"
    )
    left = shell.with_home(lambda home: home.client.list(Proxy)).items
    assert [proxy.metadata.name for proxy in left] == ["kept"]


def test_nothing_left(shell: Shell):
    create(shell, "gone")
    ended = shell("down", "--log-level", "error")
    assert ended.code == 0, ended
    assert ended.out.endswith("\nno Proxy is left, and no instance at local\n")


def test_a_provider_that_cannot_be_asked_is_no_proof(shell: Shell, monkeypatch):
    create(shell, "gone")
    monkeypatch.setitem(sys.modules, "google.auth", None)
    ended = shell("down", "--gcp-project", "my-project", "--log-level", "error")
    assert ended.code == 1, ended
    assert "instances of gcp cannot be looked for" in ended.out
    assert ended.err == (
        "error: no Proxy is left, but nobody looked for instances of gcp:"
        " mend what is said above and run `down` again\n"
    )


def test_a_provider_that_does_not_answer_is_named(shell: Shell, monkeypatch):
    create(shell, "gone")

    async def refuse(provider):
        raise EnvironmentProviderError("no rights")

    monkeypatch.setattr(LocalProvider, "list_by_tag", refuse)
    ended = shell("down", "--timeout", "2s", "--log-level", "error")
    assert ended.code == 1
    assert ended.out.splitlines()[1:] == ["instances of local cannot be deleted yet: no rights"]
    assert ended.err == (
        "error: timed out: no Proxy is left, but instances may be; run `down` again\n"
    )


def test_one_namespace_ends_no_instance_of_another(shell: Shell, monkeypatch):
    create(shell, "gone")
    deleted: list[str] = []
    labels = owner_labels(uid="uid-1", cluster_id="c", spec_hash="0" * 32)
    instance = Instance(
        provider_id="proxy-of-another", labels=labels, state=InstanceState.RUNNING, created_at=EPOCH
    )

    async def list_by_tag(provider):
        return InstanceList(() if deleted else (instance,), complete=True)

    async def delete(provider, provider_id):
        deleted.append(provider_id)

    monkeypatch.setattr(LocalProvider, "list_by_tag", list_by_tag)
    monkeypatch.setattr(LocalProvider, "delete", delete)
    flags = ("--watch-namespace", "default", "--log-level", "error")
    ended = shell("down", *flags)
    assert ended.code == 0, ended
    assert deleted == []
    assert ended.out.endswith("\nin namespace default no Proxy is left\n")

    ended = shell("down", *flags, "--gc-allow-namespaced")
    assert ended.code == 0, ended
    assert deleted == ["proxy-of-another"]
    assert ended.out == "in namespace default no Proxy is left, and no instance at local\n"

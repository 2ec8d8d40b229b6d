"""instances: nothing is said to be absent where nobody could look; whose they are is in e2e."""

import sys

import pytest

from proxy_operator.adapters.providers.gcp.provider import GcpProvider
from proxy_operator.adapters.providers.local.provider import LocalProvider
from proxy_operator.provisioning.contract import InstanceList
from proxy_operator.provisioning.errors import EnvironmentProviderError
from tests.builders import an_external
from tests.unit.cli.conftest import SECRET, Shell

NO_RIGHTS = "the account may not list instances"


@pytest.fixture
def home(shell: Shell) -> Shell:
    shell("apply", "-f", "-", stdin=SECRET)
    shell.with_home(lambda home: home.client.create(an_external("p1")))
    return shell


def said(err: str) -> list[str]:
    """The lines after the one on the cluster's id."""
    first, *rest = err.splitlines()
    assert first.startswith("this operator's cluster id is ")
    return rest


def test_none_is_said_of_the_providers_that_were_asked(home: Shell):
    ended = home("instances")
    assert (ended.code, ended.out) == (0, "")
    assert said(ended.err) == ["No instances found at local."]
    assert said(home("instances", "--foreign").err) == ["No instances of others found at local."]


def test_a_provider_without_its_extra_does_not_hide_the_others(home: Shell, monkeypatch):
    monkeypatch.setitem(sys.modules, "google.auth", None)
    ended = home("instances", "--gcp-project", "my-project")
    assert (ended.code, ended.out) == (1, "")
    found, error = said(ended.err)
    assert found == "No instances found at local."
    assert error == (
        "error: instances of gcp cannot be listed: provider gcp needs the extra gcp:"
        ' install it with pip install "proxy-operator[gcp]"'
    )


def test_a_refusal_is_not_called_none(home: Shell, monkeypatch):
    pytest.importorskip("google.auth", reason="the extra gcp is not installed")

    async def refuse(provider):
        raise EnvironmentProviderError(NO_RIGHTS)

    monkeypatch.setattr(GcpProvider, "list_all", refuse)
    ended = home("instances", "--gcp-project", "my-project")
    assert (ended.code, ended.out) == (1, "")
    fault = f"error: instances of gcp cannot be listed: {NO_RIGHTS}"
    assert said(ended.err) == ["No instances found at local.", fault]

    monkeypatch.setattr(LocalProvider, "list_all", refuse)
    ended = home("instances", "--gcp-project", "my-project")
    assert (ended.code, ended.out) == (1, "")
    assert said(ended.err) == [fault.replace("gcp", "local"), fault]


def test_a_list_with_gaps_is_not_called_none(home: Shell, monkeypatch):
    async def with_gaps(provider):
        return InstanceList((), complete=False)

    monkeypatch.setattr(LocalProvider, "list_all", with_gaps)
    ended = home("instances")
    assert ended.code == 1
    assert said(ended.err) == ["error: some instances of local could not be read"]

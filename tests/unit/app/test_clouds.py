"""Clouds are made only when they are named, and say what they lack."""

import builtins

import pytest

from proxy_operator.adapters.providers.gcp.provider import GcpProvider
from proxy_operator.app.clouds import CloudProviders
from proxy_operator.app.settings import load_settings
from proxy_operator.provisioning.errors import EnvironmentProviderError, NotConfiguredError
from tests.builders import a_clock


def clouds(**given: str) -> CloudProviders:
    settings = load_settings({"standalone": True, **given}, {})
    return CloudProviders(settings.providers, "cluster-1", a_clock())


def test_without_a_project_there_is_no_gcp():
    with pytest.raises(NotConfiguredError, match="--gcp-project"):
        clouds().makers["gcp"]()


def test_without_the_extra_the_error_names_it(monkeypatch):
    real = builtins.__import__

    def no_google(name: str, *args, **kwargs):
        if name.startswith("google"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_google)
    with pytest.raises(EnvironmentProviderError, match=r"proxy-operator\[gcp\]") as caught:
        clouds(gcp_project="my-project").makers["gcp"]()
    assert not isinstance(caught.value, NotConfiguredError)


async def test_a_project_is_enough_and_nothing_is_asked():
    pytest.importorskip("google.auth", reason="the extra gcp is not installed")
    made = clouds(gcp_project="my-project")
    assert isinstance(made.makers["gcp"](), GcpProvider)
    await made.close()

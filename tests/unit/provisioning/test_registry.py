"""Providers are made when asked for; what is missing is said each time it is asked for."""

import pytest

from proxy_operator.domain.proxy import ProviderName
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.errors import EnvironmentProviderError, NotConfiguredError
from proxy_operator.provisioning.fence import FencedProvider, OpenFence
from proxy_operator.provisioning.registry import Registry
from proxy_operator.testing.fake_provider import FakeProvider
from tests.builders import a_clock, a_create_request


def plain(name: str, provider: Provider) -> Provider:
    return provider


class Broken:
    """A constructor that fails until its extra is installed."""

    def __init__(self) -> None:
        self.is_installed = False

    def __call__(self) -> Provider:
        if not self.is_installed:
            raise EnvironmentProviderError("provider gcp needs the extra gcp")
        return FakeProvider(a_clock())


def test_a_provider_is_made_once_and_only_when_asked_for():
    made: list[FakeProvider] = []

    def construct() -> Provider:
        made.append(FakeProvider(a_clock()))
        return made[-1]

    registry = Registry({"local": construct}, plain)
    assert made == []
    assert registry.get("local") is registry.get("local") is made[0]
    assert len(made) == 1


def test_what_it_gives_is_decorated_with_its_name():
    seen: list[str] = []

    def decorate(name: str, provider: Provider) -> Provider:
        seen.append(name)
        return FencedProvider(provider, OpenFence())

    registry = Registry({"local": lambda: FakeProvider(a_clock())}, decorate)
    assert isinstance(registry.get("local"), FencedProvider)
    assert isinstance(dict(registry.available())["local"], FencedProvider)
    assert seen == ["local"]


def test_an_unknown_name_is_answered_with_the_known_ones():
    registry = Registry({"local": Broken(), "gcp": Broken()}, plain)
    with pytest.raises(EnvironmentProviderError, match="no provider 'azure'; it has: gcp, local"):
        registry.get("azure")


def test_an_enumerated_name_is_shown_as_it_is_written():
    with pytest.raises(EnvironmentProviderError, match="no provider 'gcp'; it has"):
        Registry({}, plain).get(ProviderName.GCP)


def test_a_registry_without_providers_says_so():
    with pytest.raises(EnvironmentProviderError, match="it has: none"):
        Registry({}, plain).get("local")


def test_a_provider_that_cannot_be_made_is_tried_again_each_time():
    gcp = Broken()
    registry = Registry({"gcp": gcp}, plain)
    for _ in range(2):
        with pytest.raises(EnvironmentProviderError, match="needs the extra"):
            registry.get("gcp")
    gcp.is_installed = True
    assert registry.get("gcp").placements(a_create_request().spec) == ("",)


def test_available_leaves_out_what_cannot_be_made():
    registry = Registry({"gcp": Broken(), "local": lambda: FakeProvider(a_clock())}, plain)
    assert [name for name, _ in registry.available()] == ["local"]


def test_unusable_is_what_was_asked_for_and_cannot_be_made():
    def unasked() -> Provider:
        raise NotConfiguredError("set --aws-region")

    gcp = Broken()
    registry = Registry(
        {"gcp": gcp, "local": lambda: FakeProvider(a_clock()), "aws": unasked}, plain
    )
    [(name, missing)] = registry.unusable()
    assert (name, str(missing)) == ("gcp", "provider gcp needs the extra gcp")
    gcp.is_installed = True
    assert list(registry.unusable()) == []
    assert [name for name, _ in registry.available()] == ["gcp", "local"]

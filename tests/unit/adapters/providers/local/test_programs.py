"""Squid is found, or it is said how to get it."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from proxy_operator.adapters.providers.local import programs
from proxy_operator.adapters.providers.local.instances import Instances
from proxy_operator.domain.proxy import LocalBlock, LocalEngine
from proxy_operator.provisioning.contract import CreateRequest
from proxy_operator.provisioning.errors import EnvironmentProviderError
from tests.unit.adapters.providers.local.conftest import a_request


@pytest.fixture
def squid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(programs, "SQUIDS", (str(tmp_path / "none"), str(tmp_path / "squid")))
    return a_program(tmp_path / "squid")


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(programs, "HELPERS", (str(tmp_path / "basic_ncsa_auth"),))
    return a_program(tmp_path / "basic_ncsa_auth")


def a_program(path: Path) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def create(instances: Instances, request: CreateRequest) -> None:
    instances.create(request, threading.Event())


def test_the_first_that_can_be_run_is_taken(squid: Path, helper: Path):
    assert programs.find_squid() == (str(squid), str(helper))


def test_a_missing_squid_is_said_with_the_way_to_install_it(squid: Path, helper: Path):
    squid.unlink()
    with pytest.raises(EnvironmentProviderError) as told:
        programs.find_squid()
    assert str(told.value) == (
        "spec.local.engine: squid is not installed on this machine; install it with"
        " `apt-get install squid`, or set engine to proxy-py"
    )


def test_a_missing_helper_is_named(squid: Path, helper: Path):
    helper.chmod(0o644)
    with pytest.raises(EnvironmentProviderError, match="helper basic_ncsa_auth is not installed"):
        programs.find_squid()


@pytest.mark.parametrize("ask", [Instances.check, create])
def test_an_instance_that_asks_for_it_is_not_made_otherwise(
    instances: Instances,
    root: Path,
    squid: Path,
    ask: Callable[[Instances, CreateRequest], None],
):
    squid.unlink()
    request = a_request(local=LocalBlock(engine=LocalEngine.SQUID))
    with pytest.raises(EnvironmentProviderError, match="apt-get install squid"):
        ask(instances, request)
    assert not root.exists()

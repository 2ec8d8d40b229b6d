"""Which requests a local provider refuses, and what it tells its process."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from proxy_operator.adapters.providers.local import manifests
from proxy_operator.adapters.providers.local.programs import SquidPrograms
from proxy_operator.domain.names import instance_name
from proxy_operator.domain.proxy import LocalBlock, LocalEngine, Scheme
from proxy_operator.domain.secret import Credentials
from proxy_operator.provisioning.errors import EnvironmentProviderError, PermanentProviderError
from tests.builders import a_create_request
from tests.unit.adapters.providers.local.conftest import a_request

CREDENTIALS = Credentials("crawler", "pässword")


def test_https_is_refused_with_the_field():
    with pytest.raises(PermanentProviderError, match=r"spec\.scheme"):
        manifests.check(a_request(scheme=Scheme.HTTPS), "127.0.0.1")


def test_cloud_init_is_refused_with_the_field():
    with pytest.raises(PermanentProviderError, match=r"spec\.cloudInit"):
        manifests.check(a_request(user_data=b"#cloud-config"), "127.0.0.1")


SQUID = LocalBlock(engine=LocalEngine.SQUID)
PROGRAMS = SquidPrograms("/opt/squid", "/opt/basic_ncsa_auth")


def test_squid_is_asked_for_by_name():
    manifests.check(a_request(local=SQUID), "127.0.0.1")
    assert manifests.is_squid(a_request(local=SQUID))
    assert not manifests.is_squid(a_request(local=LocalBlock()))
    assert not manifests.is_squid(a_request())


def test_credentials_that_squid_cannot_take_are_refused_with_the_field():
    strange = Credentials("#crawler", "pässword")
    with pytest.raises(PermanentProviderError, match=r"spec\.credentialsSecretRef: key username"):
        manifests.check(a_request(local=SQUID, credentials=strange), "127.0.0.1")
    manifests.check(a_request(credentials=strange), "127.0.0.1")


def test_an_egress_address_that_is_none_is_refused():
    with pytest.raises(PermanentProviderError, match=r"spec\.local\.egressAddress: 'eth0'"):
        manifests.check(a_request(local=LocalBlock(egress_address="eth0")), "127.0.0.1")


def test_a_bind_address_that_is_none_is_the_operators_fault():
    with pytest.raises(EnvironmentProviderError, match="local-bind: 'localhost'"):
        manifests.check(a_request(), "localhost")


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.0.2.7", "2001:db8::1"])
def test_beyond_loopback_credentials_are_required(bind: str):
    with pytest.raises(PermanentProviderError, match=r"spec\.credentialsSecretRef"):
        manifests.check(a_request(), bind)
    manifests.check(a_request(credentials=CREDENTIALS), bind)


@pytest.mark.parametrize("bind", ["127.0.0.1", "127.8.8.8", "::1"])
def test_on_loopback_they_are_not(bind: str):
    manifests.check(a_request(), bind)


@pytest.mark.parametrize("name", ["", "..", "proxy-", "../proxy-aaaaaaaaaaaaaaaa", "proxy-A" * 3])
def test_a_name_cannot_lead_out_of_the_root(name: str):
    with pytest.raises(PermanentProviderError):
        manifests.check(a_create_request(name=name), "127.0.0.1")
    assert manifests.name_of(f"local/{name}") is None


def test_ids_and_names_are_two_forms_of_one():
    name = instance_name("some-uid")
    assert manifests.name_of(manifests.provider_id_of(name)) == name
    assert manifests.name_of(name) is None


def test_settings_are_whole():
    request = a_request(
        credentials=CREDENTIALS, port=8080, local=LocalBlock(egress_address="127.0.0.2")
    )
    assert json.loads(manifests.settings_for(request, "::1")) == {
        "engine": "proxy-py",
        "bind": "::1",
        "port": 8080,
        "egressAddress": "127.0.0.2",
        "credentials": ["crawler", "pässword"],
    }
    assert json.loads(manifests.settings_for(a_request(), "::1")) == {
        "engine": "proxy-py",
        "bind": "::1",
        "port": 0,
        "egressAddress": None,
        "credentials": None,
    }


def test_settings_for_squid_hold_a_hash_and_no_password():
    request = a_request(credentials=CREDENTIALS, port=8080, local=SQUID)
    written = manifests.squid_settings_for(request, "::1", PROGRAMS, "salt")
    settings = json.loads(written)
    assert settings.pop("users").startswith("crawler:$6$salt$")
    assert settings == {
        "engine": "squid",
        "bind": "::1",
        "port": 8080,
        "egressAddress": None,
        "programs": {"squid": "/opt/squid", "authHelper": "/opt/basic_ncsa_auth"},
    }
    assert b"ssword" not in written
    unasked = manifests.squid_settings_for(a_request(local=SQUID), "::1", PROGRAMS, "salt")
    assert json.loads(unasked)["users"] is None


def test_a_record_is_read_as_it_was_written_and_holds_no_secret():
    request = a_request(credentials=CREDENTIALS)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    written = manifests.record_of(request, now)
    record = manifests.parse_record(json.loads(json.dumps(written)))
    assert record is not None
    assert record.labels == request.labels
    assert record.created_at == now
    assert "pässword" not in json.dumps(written, ensure_ascii=False)


@pytest.mark.parametrize("content", [None, {}, {"labels": 3}, {"labels": {}, "created_at": "x"}])
def test_a_damaged_record_is_none(content: dict[str, object] | None):
    assert manifests.parse_record(content) is None


def test_the_child_gets_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTP_PROXY", "http://elsewhere.example")
    assert set(manifests.environment_for(Path("/d"))) == {"HOME", "LANG", "PATH"}
    assert manifests.arguments_for("python", Path("/d"))[:3] == ["python", "-I", "-m"]

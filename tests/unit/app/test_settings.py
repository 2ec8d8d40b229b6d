"""Precedence, types and refusals of the settings."""

import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest

from proxy_operator.adapters.web.bind import Bind
from proxy_operator.app.given import Given, SettingError, read_options
from proxy_operator.app.options import OPTIONS, options_of
from proxy_operator.app.settings import Settings, load_settings

STANDALONE: Given = {"standalone": True}


def places(cls: type, prefix: str = "") -> set[str]:
    found: set[str] = set()
    for field in dataclasses.fields(cls):
        if dataclasses.is_dataclass(field.type):
            found |= places(field.type, f"{field.name}.")  # type: ignore[arg-type] # it is a class
        else:
            found.add(prefix + field.name)
    return found


def test_settings_have_exactly_the_fields_of_the_table():
    assert places(Settings) == {option.place for option in options_of("run")}


def test_defaults_are_those_of_the_design():
    settings = load_settings(STANDALONE, {})
    assert settings.reconcile.workers == 3
    assert settings.reconcile.provisioning_poll == timedelta(seconds=5)
    assert settings.reconcile.drift_poll == timedelta(seconds=60)
    assert settings.reconcile.quota_retry == timedelta(minutes=5)
    assert settings.health.probe_workers == 100
    assert settings.discovery.max_lease_ttl == timedelta(hours=1)
    assert settings.discovery.cooldown_window == timedelta(minutes=15)
    assert str(settings.discovery.bind) == "127.0.0.1:8090"
    assert settings.data_dir == Path("data")
    assert settings.cluster_id is None


def test_a_flag_wins_over_the_variable_and_the_variable_over_the_default():
    environ = {"PROXY_OPERATOR_WORKERS": "7", "PROXY_OPERATOR_STANDALONE": "true"}
    assert load_settings({}, environ).reconcile.workers == 7
    assert load_settings({"workers": "9"}, environ).reconcile.workers == 9
    assert load_settings({}, {**environ, "PROXY_OPERATOR_WORKERS": ""}).reconcile.workers == 3


def test_a_switch_given_as_no_wins_over_its_variable():
    environ = {"PROXY_OPERATOR_GC_DRY_RUN": "yes"}
    assert load_settings(STANDALONE, environ).gc.dry_run
    assert not load_settings({**STANDALONE, "gc_dry_run": False}, environ).gc.dry_run


def test_a_repeatable_option_takes_commas_from_its_variable_only():
    environ = {"PROXY_OPERATOR_APPLY": "a.yaml,b"}
    assert load_settings(STANDALONE, environ).session.manifests == (Path("a.yaml"), Path("b"))
    given = {**STANDALONE, "apply": ["c,d.yaml"]}
    assert load_settings(given, environ).session.manifests == (Path("c,d.yaml"),)


BAD_VALUES = {
    "DURATION": "5",
    "N": "0",
    "HOST:PORT": "localhost",
    "HOST[:PORT]|*.SUFFIX[:PORT]|CIDR": "https://check.example/",
    "ADDRESS": "here",
    "URL": "ftp://x",
    "ID": "Not_Good",
    "NAMESPACE": "Not Good",
    "PATH": "a\0b",
    "KEY=VALUE": "novalue",
    "KEY=VALUE,…": "novalue",
    "TOKEN": "sécret",
    "TEXT": None,
    "": "maybe",
}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda o: f"{o.name}-{o.commands[0]}")
def test_a_wrong_value_names_flag_and_variable(option):
    bad = BAD_VALUES.get(option.kind.metavar, "bogus")
    if bad is None or not option.variable:
        return
    with pytest.raises(SettingError) as caught:
        read_options(option.commands[0], {}, {option.variable: bad})
    message = str(caught.value)
    assert option.flag in message
    assert option.variable in message
    assert "\n" not in message
    assert option.kind.metavar != "TOKEN" or bad not in message


@pytest.mark.parametrize("text", ["0s", "-1s", "1e3s", "5 m", "m", "1d", "99999999999999999999h"])
def test_only_spans_longer_than_nothing_are_durations(text):
    with pytest.raises(SettingError, match="--gc-interval"):
        load_settings({**STANDALONE, "gc_interval": text}, {})


def test_a_cluster_is_served_on_every_address():
    settings = load_settings({}, {})
    assert not settings.standalone
    assert settings.discovery.bind == Bind("", 8090)
    assert settings.endpoints.metrics_bind == Bind("", 8080)
    assert settings.endpoints.health_probe_bind == Bind("", 8081)
    assert load_settings(STANDALONE, {}).discovery.bind == Bind("127.0.0.1", 8090)
    given = {"discovery_bind": "127.0.0.1:1"}
    assert load_settings(given, {}).discovery.bind == Bind("127.0.0.1", 1)


def test_one_process_has_one_home():
    for given in ({"kubeconfig": "k"}, {"context": "c"}):
        with pytest.raises(SettingError, match="keeps objects on this machine: drop it"):
            load_settings({**STANDALONE, **given}, {})


@pytest.mark.parametrize(
    ("given", "is_cluster"), [({}, False), ({"kubeconfig": "k"}, True), ({"context": "c"}, True)]
)
def test_down_works_where_the_commands_on_objects_do(given, is_cluster):
    settings = load_settings(given, {}, command="down")
    assert settings.home.is_cluster is is_cluster
    assert settings.standalone is not is_cluster


@pytest.mark.parametrize(
    "given",
    [
        {"leader_lease_duration": "10s"},
        {"leader_renew_deadline": "20s"},
        {"leader_retry_period": "9s"},
        {"leader_lease_duration": "15500ms"},
    ],
)
def test_spans_of_leadership_must_fit_together(given):
    with pytest.raises(SettingError, match="PROXY_OPERATOR_LEADER_LEASE_DURATION"):
        load_settings(given, {})


def test_the_token_is_never_shown():
    settings = load_settings(STANDALONE, {"DISCOVERY_TOKEN": "s3cret-token"})
    assert settings.discovery.token == "s3cret-token"
    assert "s3cret-token" not in repr(settings)


def test_collecting_in_a_namespace_of_a_cluster_needs_an_id_of_its_own():
    given: Given = {"gc_allow_namespaced": True, "watch_namespace": "crawl"}
    with pytest.raises(SettingError, match="--cluster-id"):
        load_settings(given, {})
    assert load_settings({**given, "cluster_id": "mine"}, {}).gc.allow_namespaced


def test_collecting_in_a_namespace_needs_one():
    with pytest.raises(SettingError, match="--watch-namespace"):
        load_settings({**STANDALONE, "gc_allow_namespaced": True}, {})
    given = {**STANDALONE, "gc_allow_namespaced": True, "watch_namespace": "crawl"}
    assert load_settings(given, {}).gc.allow_namespaced


def test_down_is_standalone_and_takes_over_the_variables_of_run():
    settings = load_settings({}, {"PROXY_OPERATOR_DRIFT_POLL": "2m"}, command="down")
    assert settings.standalone
    assert settings.reconcile.drift_poll == timedelta(minutes=2)

import base64
import copy
import datetime
import json
import subprocess
import sys
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy_operator.adapters.admission.validate import Admission
from proxy_operator.domain.meta import API_VERSION
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret
from proxy_operator.runtime.errors import InvalidError
from tests.builders import a_manifest, a_proxy, a_secret, an_external
from tests.unit.adapters.admission.manifests import (
    METADATA,
    PROXIES,
    UPDATES,
    external,
    local,
    proxy,
)

ADMISSION = Admission()


def refusal(manifest: Any, old: Any = None) -> InvalidError:
    with pytest.raises(InvalidError) as raised:
        ADMISSION.admit(manifest, old)
    return raised.value


def rules(manifest: Any, old: Any = None) -> dict[str, str]:
    return {error.field: error.rule for error in refusal(manifest, old).errors}


def a_secret_manifest(**members: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s1"}, **members}


@pytest.mark.parametrize("case", [*PROXIES, *METADATA, *UPDATES], ids=lambda case: case.name)
def test_each_manifest_is_accepted_or_refused_for_its_fields(case):
    before = copy.deepcopy(case.manifest)
    if case.refused:
        assert {error.field for error in refusal(case.manifest, case.old).errors} == case.refused
    else:
        admitted = ADMISSION.admit(case.manifest, case.old)
        assert ADMISSION.admit(admitted, case.old) == admitted
        assert msgspec.convert(admitted, Proxy).metadata.name == case.manifest["metadata"]["name"]
    assert case.manifest == before


def test_defaults_are_written_out():
    assert ADMISSION.admit(proxy(local(local={})))["spec"] == {
        "mode": "Managed",
        "provider": "local",
        "local": {"engine": "proxy-py"},
        "scheme": "http",
        "healthCheck": {
            "interval": "30s",
            "timeout": "5s",
            "successThreshold": 1,
            "failureThreshold": 3,
        },
    }


def test_defaults_are_those_of_the_types():
    admitted = ADMISSION.admit(proxy(local()))
    assert msgspec.convert(admitted, Proxy).spec == a_proxy().spec


def test_defaults_fill_a_block_that_has_some():
    assert ADMISSION.admit(proxy(local(healthCheck={"interval": "1m"})))["spec"]["healthCheck"] == {
        "interval": "1m",
        "timeout": "5s",
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def test_defaults_are_not_shared_between_objects():
    ADMISSION.admit(proxy(local()))["spec"]["healthCheck"]["interval"] = "spoilt"
    assert ADMISSION.admit(proxy(local()))["spec"]["healthCheck"]["interval"] == "30s"


@pytest.mark.parametrize(
    ("written", "meant"),
    [("healthcheck", "healthCheck"), ("provder", "provider"), ("max_leases", "maxLeases")],
)
def test_an_unknown_field_is_told_its_neighbour(written, meant):
    assert rules(proxy(local(**{written: 1})))[f"spec.{written}"] == (
        f"unknown field; did you mean {meant}?"
    )


def test_an_unknown_field_without_neighbour_is_just_unknown():
    assert rules(proxy(local(zzz=1)))["spec.zzz"] == "unknown field"


def test_each_error_says_field_value_and_rule():
    error = refusal(proxy(external(endpoint={"host": "a", "port": 70000})))
    assert str(error) == (
        'Proxy "default/p1" is invalid: spec.endpoint.port: must be at most 65535 (found 70000)'
    )


@pytest.mark.parametrize(
    ("spec", "field", "rule"),
    [
        (
            local(mode="managed"),
            "spec.mode",
            "must be one of Managed, External; did you mean Managed?",
        ),
        (local(port="1"), "spec.port", "must be an integer"),
        (local(attributes={"asn": 1}), "spec.attributes.asn", "must be text: quote it"),
        (local(attributes=[]), "spec.attributes", "must be an object"),
        (external(endpoint={"port": 1}), "spec.endpoint.host", "is required"),
        (
            {"provider": "gcp", "gcp": {"networkTags": "a"}},
            "spec.gcp.networkTags",
            "must be a list",
        ),
        ({"provider": "gcp", "gcp": {"spot": 1}}, "spec.gcp.spot", "must be true or false"),
        (
            local(healthCheck={"interval": "5"}),
            "spec.healthCheck.interval",
            "must be a number and a unit, such as 90s or 5m",
        ),
    ],
)
def test_rules_are_in_words(spec, field, rule):
    assert rules(proxy(spec)) == {field: rule}


def test_a_field_is_blamed_once():
    manifest = proxy({"provider": "local", "endpoint": "a:1", "gcp": {"zone": 5}, "local": []})
    fields = [error.field for error in refusal(manifest).errors]
    assert sorted(fields) == ["spec.endpoint", "spec.gcp", "spec.gcp.zone", "spec.local"]


def test_a_long_value_is_cut():
    (error,) = refusal(proxy(local(scheme="x" * 10_000))).errors
    assert len(error.value) < 100


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        ({}, "kind"),
        ({"kind": 5}, "kind"),
        ({"kind": ["Proxy"]}, "kind"),
        ({"kind": "proxy", "apiVersion": API_VERSION}, "kind"),
        ({"kind": "List", "apiVersion": "v1"}, "kind"),
        ({"kind": "Proxy"}, "apiVersion"),
        ({"kind": "Proxy", "apiVersion": "crawl.example.com/v1"}, "apiVersion"),
        ({"kind": "Secret", "apiVersion": API_VERSION}, "apiVersion"),
        ([], "manifest"),
        (None, "manifest"),
        ("text", "manifest"),
    ],
)
def test_what_is_no_object_of_ours_gets_one_error(manifest, field):
    assert [error.field for error in refusal(manifest).errors] == [field]


def test_an_unknown_kind_is_told_its_neighbour():
    assert "did you mean Proxy?" in rules({"kind": "proxy"})["kind"]


def test_the_subject_names_the_object():
    assert refusal(proxy({}, namespace="crawl")).subject == 'Proxy "crawl/p1"'
    assert refusal({**proxy({}), "metadata": {"name": "p2"}}).subject == 'Proxy "default/p2"'
    assert refusal({**proxy({}), "metadata": {}}).subject == "Proxy"


def test_a_missing_namespace_is_the_default_one():
    manifest = {**proxy(local()), "metadata": {"name": "p1"}}
    assert ADMISSION.admit(manifest)["metadata"] == {"name": "p1", "namespace": "default"}


def test_what_the_server_owns_is_dropped():
    stored = {
        **proxy(
            local(),
            uid="u",
            resourceVersion="7",
            generation=3,
            creationTimestamp="2026-01-01T00:00:00Z",
            deletionTimestamp=None,
            managedFields=[{"manager": "kubectl"}],
            ownerReferences=[],
            selfLink="/x",
            labels={},
        ),
        "status": {"phase": "no such phase"},
    }
    admitted = ADMISSION.admit(stored)
    assert admitted["metadata"] == {"name": "p1", "namespace": "default"}
    assert "status" not in admitted


@pytest.mark.parametrize(
    ("metadata", "field", "rule"),
    [
        (None, "metadata", "must be an object with a name"),
        ({}, "metadata.name", "is required"),
        ({"name": "a", "namespace": "a.b"}, "metadata.namespace", "must be 1 to 63 characters"),
        ({"name": "a", "namespace": "a" * 64}, "metadata.namespace", "must be 1 to 63 characters"),
        ({"name": "a", "generateName": "a-"}, "metadata.generateName", "is not supported"),
        ({"name": "a", "lables": {}}, "metadata.lables", "did you mean labels?"),
        ({"name": "a", "labels": []}, "metadata.labels", "must be an object"),
        ({"name": "a", "labels": {"a": True}}, "metadata.labels.a", "quote it"),
        ({"name": "a", "labels": {"a": "x y"}}, "metadata.labels.a", "at most 63 characters"),
        ({"name": "a", "labels": {1: "x"}}, "metadata.labels", "key must be a name"),
        ({"name": "a", "annotations": {"a": 1}}, "metadata.annotations.a", "quote it"),
        ({"name": "a", "finalizers": ["x"]}, "metadata.finalizers[0]", "with a prefix"),
        ({"name": "a", "finalizers": "x/y"}, "metadata.finalizers", "must be a list"),
        ({"name": "a", True: 1}, "metadata", "every key must be text"),
    ],
)
def test_metadata_is_checked(metadata, field, rule):
    found = rules({**proxy(local()), "metadata": metadata})
    assert list(found) == [field]
    assert rule in found[field]


def test_top_level_members_are_checked():
    assert rules({**proxy(local()), "specs": {}, 5: 1}) == {
        "specs": "unknown field; did you mean spec?",
        "manifest": "every key must be text: put it in quotes",
    }


@pytest.mark.parametrize(
    "value",
    [
        datetime.date(2026, 1, 1),
        b"bytes",
        {1, 2},
        float("nan"),
        float("inf"),
        object(),
        "half a pair \ud800",
        {"\ud800": "x"},
        {5: "x"},
        {None: "x"},
    ],
)
@pytest.mark.parametrize("field", ["attributes", "scheme", "port", "local", "zzz"])
def test_what_json_cannot_hold_is_refused(field, value):
    assert all(found.startswith(f"spec.{field}") for found in rules(proxy(local(**{field: value}))))


def test_any_mapping_will_do():
    frozen = MappingProxyType(
        {
            **proxy(local()),
            "spec": MappingProxyType(
                {"provider": "local", "attributes": MappingProxyType({"a": "b"})}
            ),
        }
    )
    assert ADMISSION.admit(frozen) == ADMISSION.admit(proxy(local(attributes={"a": "b"})))


def test_an_old_object_is_taken_with_its_defaults():
    assert ADMISSION.admit(proxy(local()), proxy({"provider": "local"}))
    assert rules(proxy(external()), proxy({"provider": "local"}))["spec.mode"] == (
        "mode is immutable"
    )


def test_an_old_object_without_spec_binds_nobody():
    assert ADMISSION.admit(proxy(local()), proxy(None))


def test_builders_make_valid_manifests():
    for made in (a_proxy(), an_external(), an_external(host="::1")):
        assert msgspec.convert(ADMISSION.admit(a_manifest(made)), Proxy).spec == made.spec


class TestSecret:
    def test_text_and_base64_are_merged_and_text_wins(self):
        admitted = ADMISSION.admit(
            a_secret_manifest(
                data={"username": "b2xk", "password": "cDpAcw=="}, stringData={"username": "né"}
            )
        )
        assert "stringData" not in admitted
        assert ADMISSION.admit(admitted) == admitted
        assert msgspec.convert(admitted, Secret).data == {
            "username": "né".encode(),
            "password": b"p:@s",
        }
        assert admitted["type"] == "Opaque"

    def test_a_folded_base64_value_is_one_value(self):
        text = base64.b64encode(bytes(100)).decode()
        folded = f"{text[:60]}\n{text[60:]}\n"
        admitted = ADMISSION.admit(a_secret_manifest(data={"k": folded}))
        assert admitted["data"]["k"] == text

    def test_a_secret_may_be_empty(self):
        assert ADMISSION.admit(a_secret_manifest())["data"] == {}

    def test_round_trip_of_the_domain_type(self):
        secret = a_secret(username=b"u", password=b"\x00\xff")
        built = json.loads(msgspec.json.encode(secret))
        assert msgspec.convert(ADMISSION.admit(built), Secret).data == secret.data

    @pytest.mark.parametrize(
        ("members", "field"),
        [
            ({"data": {"k": "not base64!"}}, "data.k"),
            ({"data": {"k": "YQ"}}, "data.k"),
            ({"data": {"k": "é"}}, "data.k"),
            ({"data": {"k": 5}}, "data.k"),
            ({"data": {"k": None}}, "data.k"),
            ({"stringData": {"k": True}}, "stringData.k"),
            ({"stringData": {"k": "\ud800"}}, "stringData.k"),
            ({"data": {"a/b": "YQ=="}}, "data"),
            ({"data": {"..a": "YQ=="}}, "data"),
            ({"data": {".": "YQ=="}}, "data"),
            ({"data": {"": "YQ=="}}, "data"),
            ({"data": {5: "YQ=="}}, "data"),
            ({"data": []}, "data"),
            ({"stringData": "x"}, "stringData"),
            ({"stringData": {"k": "x" * (1024 * 1024 + 1)}}, "data"),
            ({"immutable": True}, "immutable"),
            ({"type": 5}, "type"),
            ({"spec": {}}, "spec"),
        ],
    )
    def test_faults(self, members, field):
        assert list(rules(a_secret_manifest(**members))) == [field]

    def test_the_type_is_immutable(self):
        old = ADMISSION.admit(a_secret_manifest())
        assert ADMISSION.admit(a_secret_manifest(), old)
        assert rules(a_secret_manifest(type="kubernetes.io/basic-auth"), old) == {
            "type": "type is immutable"
        }

    @pytest.mark.parametrize("field", ["data", "stringData"])
    @pytest.mark.parametrize("value", ["s3cret!\ud800", ["s3cret"], {"s3cret": 1}, b"s3cret"])
    def test_no_error_shows_a_value(self, field, value):
        assert "s3cret" not in str(refusal(a_secret_manifest(**{field: {"k": value}})))
        assert "s3cret" not in str(refusal(a_secret_manifest(**{field: [value]})))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=12,
)


def fields(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=members)


PLAUSIBLE: dict[str, st.SearchStrategy[Any]] = {
    "port": st.integers(1, 65535) | st.just(3128.0),
    "scheme": st.sampled_from(["http", "https"]),
    "attributes": st.dictionaries(
        st.text("aB9._/-", min_size=1, max_size=9),
        st.text(st.characters(codec="utf-8"), max_size=9),
    ),
    "maxLeases": st.integers(0, 9),
    "healthCheck": fields(
        interval=st.sampled_from(["1s", "1h", "1m1s"]),
        timeout=st.sampled_from(["500ms", "1s", "1m"]),
        expectedStatus=st.integers(199, 600),
    ),
}
MANAGED = st.one_of(
    fields(**PLAUSIBLE, local=fields(engine=st.just("squid"), egressAddress=st.just("::1"))).map(
        lambda spec: {**spec, "provider": "local"}
    ),
    fields(
        **PLAUSIBLE,
        kubernetes=fields(
            resources=fields(limits=st.dictionaries(st.just("cpu"), st.integers(-1, 9))),
            tolerations=st.lists(fields(key=st.just("a"), operator=st.just("Exists"))),
        ),
    ).map(lambda spec: {**spec, "provider": "kubernetes"}),
    fields(**PLAUSIBLE, gcp=fields(fallbackZones=st.lists(st.just("a")), spot=st.booleans())).map(
        lambda spec: {**spec, "provider": "gcp"}
    ),
)
ODD = fields(
    **{name: known | JSON for name, known in PLAUSIBLE.items()},
    mode=st.just("External") | JSON,
    provider=st.just("local") | JSON,
    endpoint=fields(host=st.just("::1") | JSON, port=st.integers(0, 70000) | JSON, x=JSON) | JSON,
    gcp=fields(fallbackZones=st.lists(st.just("a") | JSON)) | JSON,
    kubernetes=fields(
        resources=fields(limits=st.dictionaries(st.just("cpu"), JSON)),
        tolerations=st.lists(fields(key=JSON)),
    )
    | JSON,
)
SPECS = MANAGED | ODD
MANIFESTS = JSON | st.fixed_dictionaries(
    {
        "apiVersion": st.just(API_VERSION),
        "kind": st.just("Proxy"),
        "metadata": st.just({"name": "p1"}) | fields(name=JSON, labels=JSON, annotations=JSON),
        "spec": SPECS | JSON,
    }
)


def admit_or_none(manifest: Any, old: Any = None) -> dict[str, Any] | None:
    """Return what admission returns, or None after a refusal with at least one error."""
    try:
        return ADMISSION.admit(manifest, old)
    except InvalidError as err:
        if not err.errors:
            raise
        return None


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(manifest=MANIFESTS, old=st.none() | SPECS)
def test_anything_is_refused_or_becomes_a_complete_object(manifest, old):
    stored = None if old is None else proxy(old)
    admitted = admit_or_none(manifest, stored)
    if admitted is not None:
        assert ADMISSION.admit(admitted, stored) == admitted
        msgspec.convert(admitted, Proxy)


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(spec=MANAGED)
def test_what_is_admitted_survives_the_domain_types(spec):
    admitted = admit_or_none(proxy(spec))
    if admitted is not None:
        decoded = msgspec.convert(admitted, Proxy)
        again = proxy(json.loads(msgspec.json.encode(decoded.spec)))
        assert msgspec.convert(ADMISSION.admit(again), Proxy) == decoded


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(
    members=st.fixed_dictionaries(
        {},
        optional={
            "data": st.dictionaries(st.text(max_size=5), st.text(max_size=8)) | JSON,
            "stringData": st.dictionaries(st.text(max_size=5), st.text(max_size=8)) | JSON,
            "type": JSON,
            "immutable": JSON,
            "metadata": JSON,
        },
    )
)
def test_any_secret_is_refused_or_decodes(members):
    admitted = admit_or_none(a_secret_manifest(**members))
    if admitted is not None:
        assert ADMISSION.admit(admitted) == admitted
        msgspec.convert(admitted, Secret)


def test_deep_nesting_is_no_crash():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert "spec.zzz" in rules(proxy(local(zzz=deep)))


def test_making_an_admission_loads_neither_cel_nor_jsonschema():
    code = (
        "import sys; from proxy_operator.adapters.admission.validate import Admission;"
        "Admission(); found = ('cel_expr_python', 'jsonschema', 'google');"
        "print([m for m in sys.modules if m.startswith(found)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

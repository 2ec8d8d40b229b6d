import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy_operator.domain.names import (
    instance_name,
    is_owned_by,
    owner_labels,
    secret_fingerprint,
    spec_hash,
)
from proxy_operator.domain.proxy import (
    GcpBlock,
    HealthCheck,
    KubernetesBlock,
    LocalBlock,
    LocalEngine,
    ProviderName,
    ProxySpec,
    Resources,
    Scheme,
)
from proxy_operator.domain.secret import Credentials


@given(st.text())
def test_an_instance_name_is_legal_everywhere(uid):
    assert re.fullmatch(r"proxy-[a-z2-7]{16}", instance_name(uid))


def test_an_instance_name_never_changes():
    """Instances in the world are found by it: another value would orphan them all."""
    assert instance_name("00000000-0000-4000-8000-000000000001") == "proxy-chszj5ebswgbbyyb"


def test_ownership_needs_both_labels():
    labels = owner_labels(uid="u", cluster_id="c", spec_hash="h")
    assert labels == {
        "proxy-operator-uid": "u",
        "proxy-operator-cluster": "c",
        "proxy-operator-spec-hash": "h",
    }
    assert is_owned_by(labels, uid="u", cluster_id="c")
    assert not is_owned_by(labels, uid="u", cluster_id="d")
    assert not is_owned_by(labels, uid="v", cluster_id="c")
    assert not is_owned_by({}, uid="u", cluster_id="c")


def local(**fields: Any) -> ProxySpec:
    return ProxySpec(provider=ProviderName.LOCAL, **fields)


def test_a_spec_hash_is_a_label_value_and_never_changes():
    """Another value for the same spec would replace every instance of a fleet on an upgrade."""
    assert spec_hash(local(), "") == "b8acb16e333fbe18cdf304a021ae95df"


@pytest.mark.parametrize(
    "spec",
    [
        local(scheme=Scheme.HTTPS),
        local(attributes={"region": "eu"}),
        local(max_leases=0),
        local(health_check=HealthCheck(interval="1m")),
        local(local=LocalBlock()),
        local(local=LocalBlock(engine=LocalEngine.PROXY_PY)),
    ],
)
def test_what_changes_in_place_is_not_hashed(spec):
    assert spec_hash(spec, "") == spec_hash(local(), "")


SPECS = [
    local(),
    local(port=3128),
    local(local=LocalBlock(engine=LocalEngine.SQUID)),
    local(local=LocalBlock(egress_address="192.0.2.1")),
    ProxySpec(provider=ProviderName.GCP),
    ProxySpec(provider=ProviderName.GCP, gcp=GcpBlock(zone="a")),
    ProxySpec(provider=ProviderName.GCP, gcp=GcpBlock(spot=True)),
    ProxySpec(provider=ProviderName.KUBERNETES),
    ProxySpec(provider=ProviderName.KUBERNETES, kubernetes=KubernetesBlock(image="i")),
    ProxySpec(
        provider=ProviderName.KUBERNETES,
        kubernetes=KubernetesBlock(resources=Resources(limits={"cpu": 1})),
    ),
]


def test_what_an_instance_is_made_of_is_hashed():
    hashes = {spec_hash(spec, fingerprint) for spec in SPECS for fingerprint in ("", "f")}
    assert len(hashes) == 2 * len(SPECS)
    assert all(re.fullmatch("[0-9a-f]{32}", found) for found in hashes)


def test_an_empty_part_of_a_block_is_no_change():
    bare = ProxySpec(provider=ProviderName.KUBERNETES)
    empty = ProxySpec(
        provider=ProviderName.KUBERNETES,
        kubernetes=KubernetesBlock(resources=Resources(), node_selector={}),
    )
    assert spec_hash(empty, "") == spec_hash(bare, "")


def test_the_order_of_labels_is_no_change():
    one, other = (
        ProxySpec(
            provider=ProviderName.KUBERNETES, kubernetes=KubernetesBlock(node_selector=selector)
        )
        for selector in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"})
    )
    assert spec_hash(one, "") == spec_hash(other, "")


def fingerprint(user_data: bytes | None = None, *names: str, salt: str = "c") -> str:
    credentials = Credentials(*names) if names else None
    return secret_fingerprint(user_data=user_data, credentials=credentials, salt=salt)


def test_no_secret_has_no_fingerprint():
    assert fingerprint() == ""


def test_a_fingerprint_tells_all_contents_apart():
    found = [
        fingerprint(b""),
        fingerprint(b"a"),
        fingerprint(None, "a", "b"),
        fingerprint(b"a", "a", "b"),
        fingerprint(None, "ab", ""),
        fingerprint(None, "a", "b", salt="d"),
    ]
    assert len(set(found)) == len(found)
    assert fingerprint(b"a", "a", "b") == fingerprint(b"a", "a", "b")
    assert all(re.fullmatch("[0-9a-f]{32}", text) for text in found)

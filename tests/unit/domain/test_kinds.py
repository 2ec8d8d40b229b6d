from datetime import UTC, datetime, timedelta, timezone

import pytest

from proxy_operator.domain.condition import ConditionStatus, ConditionType, with_condition
from proxy_operator.domain.kinds import (
    PROXY,
    SECRET,
    addressed,
    format_time,
    kind_named,
    kind_of,
    to_document,
)
from proxy_operator.domain.proxy import Proxy, ProxyStatus
from proxy_operator.domain.secret import Secret
from tests.builders import a_proxy, a_secret


def test_each_kind_is_found_by_type_and_by_name():
    assert kind_of(Proxy) is PROXY
    assert kind_of(Secret) is SECRET
    assert kind_named("Proxy") is PROXY
    assert kind_named("proxy") is None
    with pytest.raises(KeyError):
        kind_of(str)


def test_times_are_whole_seconds_in_utc():
    moment = datetime(2026, 1, 2, 3, 4, 5, 999999, tzinfo=timezone(timedelta(hours=2)))
    assert format_time(moment) == "2026-01-02T01:04:05Z"


def test_a_document_is_plain_json_down_to_the_last_row():
    conditions = with_condition(
        (),
        ConditionType.HEALTHY,
        status=ConditionStatus.TRUE,
        reason="ProbeSucceeded",
        message="",
        observed_generation=1,
        now=datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
    )
    proxy = a_proxy(status=ProxyStatus(conditions=conditions), meta={"finalizers": ("f/1",)})
    document = to_document(proxy)
    assert document["metadata"]["finalizers"] == ["f/1"]
    (row,) = document["status"]["conditions"]
    assert isinstance(document["status"]["conditions"], list)
    assert row["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    assert to_document(a_secret(k=b"\xff"))["data"] == {"k": "/w=="}


@pytest.mark.parametrize(
    ("manifest", "address"),
    [
        ({"kind": "Proxy", "metadata": {"name": "p"}}, (PROXY, "default", "p")),
        ({"kind": "Secret", "metadata": {"name": "p", "namespace": "n"}}, (SECRET, "n", "p")),
        ({"kind": "Proxy", "metadata": {"name": 5}}, None),
        ({"kind": "Proxy", "metadata": {"name": "p", "namespace": 5}}, None),
        ({"kind": "Proxy", "metadata": []}, None),
        ({"kind": "Pod", "metadata": {"name": "p"}}, None),
        ({"kind": ["Proxy"]}, None),
        ({}, None),
    ],
)
def test_what_a_manifest_is_about(manifest, address):
    assert addressed(manifest) == address

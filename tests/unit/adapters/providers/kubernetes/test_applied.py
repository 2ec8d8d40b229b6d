"""The shape of managedFields here is what a real API server wrote for such a ConfigMap."""

import copy
from typing import Any

from proxy_operator.adapters.providers.kubernetes.applied import differences

ME = "proxy-operator"


def desired() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "c",
            "namespace": "default",
            "labels": {"app.kubernetes.io/name": "squid"},
            "ownerReferences": [{"kind": "Proxy", "name": "p", "uid": "u-1", "controller": True}],
        },
        "immutable": True,
        "data": {"squid.conf": "http_port 3128\n"},
    }


def stored() -> dict[str, Any]:
    document = copy.deepcopy(desired())
    document["metadata"] |= {
        "uid": "u-2",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [
            {
                "manager": ME,
                "operation": "Apply",
                "fieldsV1": {
                    "f:data": {"f:squid.conf": {}},
                    "f:immutable": {},
                    "f:metadata": {
                        "f:labels": {"f:app.kubernetes.io/name": {}},
                        "f:ownerReferences": {'k:{"uid":"u-1"}': {}},
                    },
                },
            }
        ],
    }
    return document


def test_what_is_applied_already_differs_in_nothing() -> None:
    assert differences(desired(), stored(), ME) == []


def test_fields_of_others_are_left_alone() -> None:
    have = stored()
    have["metadata"]["labels"]["team"] = "crawl"
    have["metadata"]["annotations"] = {"note": "x"}
    have["metadata"]["ownerReferences"].append({"kind": "Other", "name": "o", "uid": "u-9"})
    assert differences(desired(), have, ME) == []


def test_a_changed_value_is_named_by_its_path() -> None:
    have = stored()
    have["data"]["squid.conf"] = "http_port 1\n"
    assert differences(desired(), have, ME) == ["data.squid.conf"]


def test_what_is_missing_is_named() -> None:
    want = desired()
    want["metadata"]["labels"]["x"] = "y"
    assert differences(want, stored(), ME) == ["metadata.labels.x"]


def test_what_we_own_and_no_longer_want_is_named() -> None:
    want = desired()
    want["metadata"]["labels"] = {}
    assert "metadata.labels.app.kubernetes.io/name" in differences(want, stored(), ME)


def test_an_owner_of_another_uid_is_named() -> None:
    want = desired()
    want["metadata"]["ownerReferences"][0]["uid"] = "u-3"
    paths = differences(want, stored(), ME)
    assert "metadata.ownerReferences[u-3].uid" in paths
    assert "metadata.ownerReferences[u-1].uid" in paths


def test_equal_values_applied_by_somebody_else_are_not_ours_yet() -> None:
    have = stored()
    have["metadata"]["managedFields"][0]["manager"] = "kubectl"
    assert "data.squid.conf" in differences(desired(), have, ME)
    del have["metadata"]["managedFields"]
    assert "data.squid.conf" in differences(desired(), have, ME)


def test_only_an_apply_to_the_object_itself_counts() -> None:
    for change in ({"operation": "Update"}, {"subresource": "status"}):
        have = stored()
        have["metadata"]["managedFields"][0].update(change)
        assert differences(desired(), have, ME) != []


def test_no_value_is_ever_in_the_answer() -> None:
    want = desired()
    want["data"]["squid.conf"] = "a secret"
    assert "a secret" not in str(differences(want, stored(), ME))

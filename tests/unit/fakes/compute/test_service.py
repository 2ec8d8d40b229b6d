"""Requests and answers are what the vendor's description says, and nothing else."""

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.fakes.compute import strangers
from tests.fakes.compute.discovery import description
from tests.fakes.compute.faults import Refuse
from tests.fakes.compute.messages import Request
from tests.fakes.compute.refusals import (
    forbidden,
    pool_exhausted,
    quota_exceeded,
    rate_limited,
    unavailable,
)
from tests.fakes.compute.strangers import PROJECT
from tests.fakes.compute.tokens import Tokens
from tests.unit.fakes.compute.builders import API, ZONE, Cloud, an_insert, reason

INSTANCES = f"projects/{PROJECT}/zones/{ZONE}/instances"


@pytest.fixture
def cloud():
    return Cloud()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"lables": {}}, "unknown field lables"),
        ({"name": "Proxy"}, "name: must match"),
        ({"disks": [{"boot": "yes"}]}, "disks[0].boot: must be true or false"),
        ({"disks": [{"initializeParams": {"diskSizeGb": "a"}}]}, "string of digits"),
        ({"disks": [{"initializeParams": {"sourceimage": ""}}]}, "unknown field"),
        ({"scheduling": {"provisioningModel": "CHEAP"}}, "must be one of"),
        ({"labels": {"a": 1}}, "labels.a: must be a string"),
        ({"metadata": {"items": {}}}, "metadata.items: must be a list"),
        ({"networkInterfaces": [{"accessConfigs": [{"type": "NAT"}]}]}, "must be one of"),
        ({"tags": []}, "tags: must be an object"),
    ],
)
def test_a_body_that_the_description_does_not_know_is_refused_by_name(cloud, fields, problem):
    answer = cloud.service.handle(an_insert(**fields))
    assert (answer.status, reason(answer)) == (400, "invalid")
    assert problem in answer.json()["error"]["message"]
    assert problem in cloud.world.ledger.violations[0]


def test_an_insert_names_its_instance(cloud):
    request = Request("POST", f"{API}/{INSTANCES}", body=b"{}")
    assert "name: required" in cloud.service.handle(request).json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "query", "status"),
    [
        ("GET", INSTANCES, {}, 404),
        ("PUT", f"{INSTANCES}/a", {}, 404),
        ("GET", f"{INSTANCES}/A", {}, 404),
        ("GET", f"{INSTANCES}/a", {"requestId": "1"}, 400),
        ("GET", f"projects/{PROJECT}/aggregated/instances", {"maxresults": "1"}, 400),
        ("GET", f"projects/{PROJECT}/aggregated/instances", {"maxResults": "many"}, 400),
        ("GET", f"projects/{PROJECT}/aggregated/instances", {"returnPartialSuccess": "1"}, 400),
        ("GET", f"projects/{PROJECT}/aggregated/instances", {"fields": "items"}, 400),
    ],
)
def test_paths_and_queries(cloud, method, path, query, status):
    assert cloud.call(method, path, query).status == status


def test_a_body_that_is_no_json_and_one_where_none_belongs(cloud):
    request = Request("POST", f"{API}/{INSTANCES}", body=b"{")
    assert reason(cloud.service.handle(request)) == "parseError"
    assert cloud.call("GET", f"{INSTANCES}/a", body=b"{}").status == 400


def test_a_version_header_is_refused(cloud):
    headers = {"x-goog-api-version": "2026-11-01"}
    assert cloud.call("GET", f"{INSTANCES}/a", headers=headers).status == 400
    cloud.service.allows_version_header = True
    assert cloud.call("GET", f"{INSTANCES}/a", headers=headers).status == 404


def test_an_answer_that_the_vendor_would_never_give_is_an_error_of_the_fake(cloud):
    machine = strangers.make(cloud.world, ZONE, "proxy-a")
    strangers.set_status(cloud.world, machine, "BORED")
    with pytest.raises(AssertionError, match=r"Instance: status: must be one of"):
        cloud.get()
    method, _ = description().find(Request("GET", f"{API}/{INSTANCES}/a"))
    with pytest.raises(AssertionError, match="unknown field natIp"):
        description().check_answer(method, {"natIp": ""})


def test_an_instance_shows_what_was_asked_for(cloud):
    fields: dict[str, Any] = {
        "labels": {"proxy-operator-uid": "u-1"},
        "tags": {"items": ["proxy"]},
        "metadata": {"items": [{"key": "user-data", "value": "#cloud-config"}]},
        "scheduling": {
            "provisioningModel": "SPOT",
            "instanceTerminationAction": "DELETE",
            "automaticRestart": False,
            "onHostMaintenance": "TERMINATE",
        },
        "serviceAccounts": [{"email": "x@y.iam.gserviceaccount.com", "scopes": []}],
    }
    cloud.service.handle(an_insert(**fields))
    cloud.passes(8)
    shown = cloud.get().json()
    assert shown["labels"] == fields["labels"]
    assert shown["tags"]["items"] == ["proxy"]
    assert shown["metadata"]["items"] == fields["metadata"]["items"]
    assert shown["scheduling"] == fields["scheduling"]
    assert "initializeParams" not in shown["disks"][0]
    assert shown["creationTimestamp"] == "2026-01-01T00:00:01.000+00:00"
    assert shown["lastStartTimestamp"] == "2026-01-01T00:00:08.000+00:00"


@pytest.mark.parametrize(
    ("error", "status", "reason_said", "info"),
    [
        (quota_exceeded(), 403, "quotaExceeded", None),
        (rate_limited(), 403, "rateLimitExceeded", "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED"),
        (rate_limited(is_user=True, status=429), 429, "userRateLimitExceeded", "CONCURRENT"),
        (forbidden(), 403, "forbidden", "IAM_PERMISSION_DENIED"),
        (unavailable(), 503, "backendError", None),
        (pool_exhausted(), 503, "ZONE_RESOURCE_POOL_EXHAUSTED", "ZONE_RESOURCE_POOL_EXHAUSTED"),
    ],
)
def test_refusals_are_worded_as_the_api_words_them(cloud, error, status, reason_said, info):
    cloud.world.faults.add(Refuse(error), "insert", times=1)
    answer = cloud.insert()
    assert (answer.status, reason(answer)) == (status, reason_said)
    details = answer.json()["error"].get("details", [{"reason": ""}])
    assert (info or "") in details[0]["reason"]
    assert cloud.world.ledger.inserts == []
    assert cloud.insert().status == 200


def test_lost_rights(cloud):
    cloud.world.conduct.can_change = False
    assert reason(cloud.insert()) == reason(cloud.delete()) == "forbidden"
    assert cloud.list().status == 200
    cloud.world.conduct.can_read = False
    assert reason(cloud.get()) == reason(cloud.list()) == "forbidden"


def test_tokens_are_asked_for_and_end(cloud):
    tokens = cloud.service.tokens = Tokens(cloud.clock, is_required=True)
    assert (cloud.list().status, reason(cloud.list())) == (401, "authError")

    def listed(token):
        headers = {"authorization": f"Bearer {token}"}
        path = f"projects/{PROJECT}/aggregated/instances"
        return cloud.call("GET", path, headers=headers).status

    first, seconds = tokens.issue() or ("", 0)
    assert (listed(first), listed("another"), seconds) == (200, 401, 3600.0)
    cloud.passes(3600)
    assert listed(first) == 401
    second, _ = tokens.issue() or ("", 0)
    tokens.revoke_all()
    assert listed(second) == 401
    tokens.failures = 1
    assert tokens.issue() is None
    assert tokens.issue() is not None


def test_every_call_is_in_the_books_with_its_status(cloud):
    cloud.insert()
    cloud.passes(1)
    cloud.get()
    cloud.get("proxy-b")
    cloud.list()
    books = cloud.world.ledger
    assert [(c.method, c.name, c.status) for c in books.calls] == [
        ("insert", "proxy-a", 200),
        ("get", "proxy-a", 200),
        ("get", "proxy-b", 404),
        ("aggregatedList", "", 200),
    ]
    assert books.count("get") == 2
    assert books.count("get", since=2.0) == 0


def test_everything_it_can_show_passes_the_description(cloud):
    for number, status in enumerate(("PENDING", "REPAIRING", "SUSPENDED", "STOPPED")):
        machine = strangers.make(cloud.world, ZONE, f"proxy-{number}", {"a": "b"})
        strangers.set_status(cloud.world, machine, status)
    cloud.world.conduct.unreachable = {"us-central1-a"}
    cloud.world.conduct.timing.stop = timedelta(0)
    cloud.world.conduct.page_size = 1
    assert cloud.list().status == 200
    assert cloud.delete("proxy-0").status == 200
    assert json.loads(cloud.list().body)["kind"] == "compute#instanceAggregatedList"

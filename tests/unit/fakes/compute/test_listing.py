"""The aggregated list: whose instances, in which pages, and what it says is missing."""

import pytest

from tests.fakes.compute import strangers
from tests.fakes.compute.conduct import ZONES
from tests.unit.fakes.compute.builders import ZONE, Cloud, names_in, reason


@pytest.fixture
def cloud():
    cloud = Cloud()
    for number in range(7):
        labels = {"owner": "us" if number % 2 else "them", "n": str(number)}
        strangers.make(cloud.world, ZONES[number % 3], f"proxy-{number}", labels)
    return cloud


def pages(cloud, **query):
    token: dict[str, str] = {}
    found = []
    for _ in range(20):
        answer = cloud.list(**query, **token)
        assert answer.status == 200
        found.append(answer)
        if "nextPageToken" not in answer.json():
            return found
        token = {"pageToken": answer.json()["nextPageToken"]}
    raise AssertionError("the pages never end")


def test_it_shows_every_zone_and_says_which_are_empty(cloud):
    answer = cloud.list(filter='labels.n="0"').json()
    assert answer["items"].keys() == {f"zones/{zone}" for zone in ZONES}
    assert [one["name"] for one in answer["items"][f"zones/{ZONE}"]["instances"]] == ["proxy-0"]
    assert answer["items"]["zones/us-central1-a"]["warning"]["code"] == "NO_RESULTS_ON_PAGE"
    assert "unreachables" not in answer
    assert "warning" not in answer


@pytest.mark.parametrize(
    ("expression", "numbers"),
    [
        ("", "0362514"),
        ('labels.owner="us"', "351"),
        ("labels.owner=us", "351"),
        ('(labels.owner="us") (labels.n="3")', "3"),
        ('(labels.owner="us") AND (labels.n="3")', "3"),
        ('labels.owner="us" AND labels.n="4"', ""),
        ("labels.nothing:*", ""),
        ("labels.n:*", "0362514"),
        ('labels.owner!="us"', "0624"),
        ("name=proxy-5", "5"),
        ("status=STOPPING", ""),
    ],
)
def test_filters(cloud, expression, numbers):
    seen = names_in(cloud.list(filter=expression))
    assert sorted(seen) == sorted(f"proxy-{number}" for number in numbers)


@pytest.mark.parametrize(
    "expression",
    ["owner=us", 'labels.a="b" labels.c="d"', '(labels.a="b"', "labels.Owner=us", "labels.a = b c"],
)
def test_a_filter_that_is_none_is_refused(cloud, expression):
    assert reason(cloud.list(filter=expression)) == "invalid"


@pytest.mark.parametrize("size", ["1", "3", "7"])
def test_pages_hold_everything_once(cloud, size):
    found = pages(cloud, maxResults=size, filter="labels.n:*")
    names = [name for page in found for name in names_in(page)]
    assert sorted(names) == [f"proxy-{number}" for number in range(7)]
    assert all(len(names_in(page)) <= int(size) for page in found)
    assert len(found) == -(-7 // int(size))


def test_a_page_is_never_larger_than_the_cloud_makes_them(cloud):
    cloud.world.conduct.page_size = 2
    assert len(pages(cloud, maxResults="500")) == 4


def test_paging_goes_on_when_the_last_one_seen_is_gone(cloud):
    first = cloud.list(maxResults="3").json()
    for machine in cloud.world.machines():
        if machine.zone == ZONE:
            strangers.vanish(cloud.world, machine)
    rest = cloud.list(maxResults="500", pageToken=first["nextPageToken"])
    assert len(names_in(rest)) == 4


def test_a_page_token_belongs_to_its_filter(cloud):
    token = cloud.list(maxResults="1").json()["nextPageToken"]
    assert reason(cloud.list(pageToken=token, filter='labels.owner="us"')) == "invalid"
    assert reason(cloud.list(pageToken="abc")) == "invalid"


def test_at_most_500_may_be_asked_for(cloud):
    assert reason(cloud.list(maxResults="501")) == "invalid"


@pytest.mark.parametrize("way", ["unreachables", "warning", "scope"])
def test_an_unreachable_zone_is_missing_and_that_is_said(cloud, way):
    cloud.world.conduct.unreachable = {ZONE}
    cloud.world.conduct.unreachable_is_said_by = {way}
    answer = cloud.list()
    assert sorted(names_in(answer)) == ["proxy-1", "proxy-2", "proxy-4", "proxy-5"]
    document = answer.json()
    scope = document["items"].get(f"zones/{ZONE}", {}).get("warning", {}).get("code")
    said = {
        "unreachables": document.get("unreachables"),
        "warning": document.get("warning", {}).get("code"),
        "scope": scope,
    }
    expected = {
        "unreachables": [f"projects/fake-project/zones/{ZONE}"],
        "warning": "PARTIAL_SUCCESS",
        "scope": "UNREACHABLE",
    }
    assert said == {name: expected[name] if name == way else None for name in said}


def test_what_is_hidden_takes_no_place_on_a_page(cloud):
    cloud.world.conduct.unreachable = {ZONE}
    assert [len(names_in(page)) for page in pages(cloud, maxResults="1")] == [1] * 4


def test_an_unreachable_zone_fails_a_list_that_wants_all_or_nothing(cloud):
    cloud.world.conduct.unreachable = {ZONE}
    assert cloud.list(returnPartialSuccess="false").status == 503
    assert cloud.get("proxy-0").status == cloud.delete("proxy-0").status == 503
    assert cloud.get("proxy-1", ZONES[1]).status == 200
    assert cloud.insert("proxy-9").status == 503

"""Instances over time: they appear, run, stop and go, and never twice for one request id."""

from datetime import timedelta

import pytest

from tests.fakes.compute import strangers
from tests.fakes.compute.faults import FailOperation
from tests.fakes.compute.refusals import quota_exceeded
from tests.fakes.compute.strangers import PROJECT
from tests.unit.fakes.compute.builders import (
    ZONE,
    Cloud,
    a_request_id,
    nat_ip,
    reason,
)

OTHER_ZONE = "us-central1-a"


@pytest.fixture
def cloud():
    return Cloud()


def a_running_instance(cloud, name="proxy-a", **body):
    assert cloud.insert(name, **body).status == 200
    cloud.passes(8)
    return cloud.world.find(PROJECT, ZONE, name)


def test_an_instance_appears_stages_and_runs(cloud):
    accepted = cloud.insert().json()
    assert (accepted["status"], accepted["operationType"]) == ("RUNNING", "insert")
    seen = []
    for _ in range(9):
        seen.append(cloud.status())
        cloud.passes(1)
    assert seen == ["404", *["PROVISIONING"] * 2, *["STAGING"] * 5, "RUNNING"]


def test_the_operation_ends_when_the_instance_runs(cloud):
    name = cloud.insert().json()["name"]
    path = f"projects/{PROJECT}/zones/{ZONE}/operations/{name}"
    assert cloud.call("GET", path).json()["status"] == "RUNNING"
    cloud.passes(8)
    done = cloud.call("GET", path).json()
    assert (done["status"], "error" in done) == ("DONE", False)


def test_an_address_comes_when_it_comes(cloud):
    cloud.world.conduct.timing.nat_ip = timedelta(seconds=20)
    cloud.insert()
    cloud.passes(27)
    assert (cloud.status(), nat_ip(cloud.get())) == ("RUNNING", None)
    cloud.passes(1)
    assert nat_ip(cloud.get()) == "198.18.0.2"


def test_an_instance_without_access_config_has_no_address(cloud):
    machine = a_running_instance(cloud, networkInterfaces=[{"network": "global/networks/default"}])
    assert machine.nat_ip is None
    assert "accessConfigs" not in cloud.get().json()["networkInterfaces"][0]


def test_a_deleted_instance_stops_and_is_gone(cloud):
    a_running_instance(cloud)
    assert cloud.delete().status == 200
    assert cloud.status() == "STOPPING"
    assert cloud.delete().status == 200
    cloud.passes(10)
    assert cloud.status() == "404"
    assert reason(cloud.delete()) == "notFound"
    assert len(cloud.world.ledger.deletes) == 1


def test_a_delete_of_what_has_not_appeared_finds_nothing_and_stops_nothing(cloud):
    cloud.insert()
    assert cloud.delete().status == 404
    cloud.passes(1)
    assert cloud.status() == "PROVISIONING"


def test_a_deletion_wins_over_the_start(cloud):
    cloud.insert()
    cloud.passes(2)
    cloud.delete()
    cloud.passes(8)
    assert cloud.status() == "STOPPING"
    cloud.passes(2)
    assert cloud.status() == "404"


def test_a_name_is_taken_from_the_accepted_insert_until_the_instance_is_gone(cloud):
    cloud.insert()
    assert reason(cloud.insert()) == "alreadyExists"
    cloud.passes(8)
    cloud.delete()
    assert reason(cloud.insert()) == "alreadyExists"
    assert cloud.insert(zone=OTHER_ZONE).status == 200, "names are unique per zone only"
    cloud.passes(10)
    assert cloud.insert().status == 200


def test_the_same_request_id_gets_the_same_operation_and_no_second_instance(cloud):
    one = cloud.insert(request_id=a_request_id(1)).json()
    cloud.passes(30)
    cloud.delete()
    cloud.passes(30)
    again = cloud.insert(request_id=a_request_id(1)).json()
    assert (again["name"], again["status"]) == (one["name"], "DONE")
    cloud.passes(30)
    assert cloud.status() == "404"
    assert len(cloud.world.ledger.inserts) == 1


def test_a_forgotten_request_id_is_new(cloud):
    cloud.world.conduct.request_memory = timedelta(minutes=10)
    cloud.insert(request_id=a_request_id(1))
    cloud.passes(599)
    assert cloud.insert(request_id=a_request_id(1)).status == 200
    cloud.passes(1)
    assert reason(cloud.insert(request_id=a_request_id(1))) == "alreadyExists"


def test_a_request_id_for_another_instance_is_refused_and_noted(cloud):
    cloud.insert(request_id=a_request_id(1))
    assert reason(cloud.insert("proxy-b", request_id=a_request_id(1))) == "invalid"
    assert reason(cloud.delete(request_id=a_request_id(1))) == "invalid"
    assert len(cloud.world.ledger.violations) == 2


@pytest.mark.parametrize("text", ["1", "00000000-0000-0000-0000-000000000000"])
def test_a_request_id_is_a_uuid_other_than_zero(cloud, text):
    assert reason(cloud.insert(request_id=text)) == "invalid"


def test_a_refused_insert_leaves_its_request_id_unused(cloud):
    cloud.world.conduct.quota = 0
    assert reason(cloud.insert(request_id=a_request_id(1))) == "quotaExceeded"
    cloud.world.conduct.quota = None
    assert cloud.insert(request_id=a_request_id(1)).status == 200


def test_a_full_zone_accepts_and_fails_in_the_operation(cloud):
    cloud.world.conduct.zones[ZONE] = 1
    a_running_instance(cloud)
    operation = cloud.insert("proxy-b").json()["name"]
    cloud.passes(5)
    assert cloud.status("proxy-b") == "404"
    path = f"projects/{PROJECT}/zones/{ZONE}/operations/{operation}"
    error = cloud.call("GET", path).json()
    assert error["error"]["errors"][0]["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED"
    assert error["httpErrorStatusCode"] == 503
    assert [life.name for life in cloud.world.ledger.lives] == ["proxy-a"]


def test_a_replay_of_a_failed_insert_tells_its_error(cloud):
    cloud.world.faults.add(FailOperation("QUOTA_EXCEEDED"), times=1)
    cloud.insert(request_id=a_request_id(1))
    cloud.passes(5)
    again = cloud.insert(request_id=a_request_id(1)).json()
    assert again["error"]["errors"][0]["code"] == "QUOTA_EXCEEDED"
    assert cloud.insert(request_id=a_request_id(2)).status == 200


def test_an_instance_may_appear_and_vanish(cloud):
    doom = FailOperation("IP_SPACE_EXHAUSTED_WITH_DETAILS", timedelta(seconds=6), is_seen=True)
    cloud.world.faults.add(doom, name="proxy-a")
    cloud.insert()
    cloud.passes(5)
    assert cloud.status() == "PROVISIONING"
    cloud.passes(1)
    assert cloud.status() == "404"
    [life] = cloud.world.ledger.lives
    assert (life.seconds(cloud.world.now()), life.end) == (5.0, "stock-out")


def test_quota_may_be_said_by_the_operation(cloud):
    cloud.world.conduct.quota = 1
    cloud.world.conduct.quota_is_said_by = "operation"
    cloud.insert("proxy-a")
    cloud.insert("proxy-b", zone=OTHER_ZONE, request_id=a_request_id(1))
    cloud.passes(8)
    assert cloud.status("proxy-b", OTHER_ZONE) == "404"
    again = cloud.insert("proxy-b", zone=OTHER_ZONE, request_id=a_request_id(1)).json()
    assert again["error"]["errors"][0]["code"] == "QUOTA_EXCEEDED"


def test_a_preempted_spot_instance_goes_or_stays_stopped_as_it_asked(cloud):
    spot = {"provisioningModel": "SPOT", "instanceTerminationAction": "DELETE"}
    machine = a_running_instance(cloud, scheduling=spot)
    strangers.preempt(cloud.world, machine)
    assert cloud.status() == "STOPPING"
    cloud.passes(10)
    assert cloud.status() == "404"
    machine = a_running_instance(cloud, "proxy-b", scheduling={"provisioningModel": "SPOT"})
    strangers.preempt(cloud.world, machine)
    cloud.passes(10)
    assert cloud.status("proxy-b") == "TERMINATED"
    assert nat_ip(cloud.get("proxy-b")) is None


def test_an_instance_that_only_stops_can_be_deleted(cloud):
    machine = a_running_instance(cloud)
    strangers.stop(cloud.world, machine)
    cloud.passes(1)
    cloud.delete()
    cloud.passes(9)
    assert cloud.status() == "STOPPING", "the end of the first stop is none of the deletion"
    cloud.passes(1)
    assert cloud.status() == "404"


def test_an_address_changes_and_is_lost(cloud):
    machine = a_running_instance(cloud)
    before = machine.nat_ip
    after = strangers.change_address(cloud.world, machine)
    assert nat_ip(cloud.get()) == after != before
    strangers.lose_address(cloud.world, machine)
    assert nat_ip(cloud.get()) is None


def test_a_stranger_makes_a_deleted_instance_again(cloud):
    machine = a_running_instance(cloud)
    cloud.delete()
    cloud.passes(10)
    strangers.make_again(cloud.world, machine.life)
    again = cloud.get().json()
    assert (again["status"], again["labels"]) == ("RUNNING", {"owner": "us"})
    assert again["id"] != machine.id
    assert [life.birth for life in cloud.world.ledger.lives] == ["insert", "stranger"]


def test_a_vanished_instance_finishes_what_was_under_way(cloud):
    machine = a_running_instance(cloud)
    name = cloud.delete().json()["name"]
    strangers.vanish(cloud.world, machine)
    assert cloud.world.operation(PROJECT, ZONE, name).status == "DONE"
    cloud.passes(10)
    assert cloud.status() == "404"
    assert machine.life.gone_at == 8.0


def test_an_instance_that_stops_before_its_address_comes_gets_none(cloud):
    cloud.world.conduct.timing.nat_ip = timedelta(seconds=20)
    strangers.stop(cloud.world, a_running_instance(cloud))
    cloud.passes(30)
    assert (cloud.status(), nat_ip(cloud.get())) == ("TERMINATED", None)


def test_an_instance_is_found_by_its_number_too(cloud):
    machine = a_running_instance(cloud)
    assert cloud.get(machine.id).json()["name"] == "proxy-a"


def test_what_does_not_exist_is_named(cloud):
    assert reason(cloud.insert(zone="mars-north1-a")) == "invalid"
    cloud.world.conduct.missing.add("debian-12")
    assert reason(cloud.insert()) == "notFound"
    foreign = cloud.call("GET", "projects/another/aggregated/instances")
    assert foreign.status == 404


@pytest.mark.parametrize(
    "body",
    [
        {"labels": {"Owner": "us"}},
        {"labels": {"owner": "US"}},
        {"labels": {"owner": "a" * 64}},
        {"machineType": "e2-micro"},
        {"machineType": f"zones/{OTHER_ZONE}/machineTypes/e2-micro"},
        {"disks": []},
        {"disks": [{"boot": True}]},
        {"networkInterfaces": []},
        {"scheduling": {"instanceTerminationAction": "DELETE"}},
        {"scheduling": {"provisioningModel": "SPOT", "automaticRestart": True}},
        {"metadata": {"items": [{"key": "user-data", "value": "x" * (256 * 1024 + 1)}]}},
    ],
)
def test_impossible_inserts_are_refused(cloud, body):
    assert cloud.insert(**body).status == 400
    assert cloud.world.ledger.inserts == []


def test_a_refusal_hides_nothing_it_says():
    answer = quota_exceeded(3).answer()
    assert answer.status == answer.json()["error"]["code"] == 403

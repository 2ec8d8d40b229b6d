"""What happens to instances that no client of ours asked for: the cloud's own deeds, and people's.

All take effect at once, or after the time that stopping takes.
"""

from collections.abc import Mapping
from typing import Any

from tests.fakes.compute.ledger import Life
from tests.fakes.compute.machine import Machine
from tests.fakes.compute.world import World

PROJECT = "fake-project"


def preempt(world: World, machine: Machine) -> None:
    """Take a spot instance back; what was asked for decides if it is deleted or TERMINATED."""
    now = world.now()
    scheduling = machine.body.get("scheduling", {})
    if scheduling.get("instanceTerminationAction", "STOP") == "DELETE":
        world.end(machine, now, "preempted")
        return
    stop(world, machine)


def stop(world: World, machine: Machine) -> None:
    """Stop an instance, as a person may; it is TERMINATED afterwards, and still there."""

    def stopped(_: float) -> None:
        if machine.status == "STOPPING" and not machine.is_ending:
            machine.status, machine.nat_ip = "TERMINATED", None

    machine.status = "STOPPING"
    world.timeline.at(world.now() + world.conduct.timing.stop.total_seconds(), stopped)


def start(world: World, machine: Machine) -> None:
    """Start an instance again; it gets another address."""
    world.run(machine, world.now())


def delete(world: World, machine: Machine) -> None:
    """Delete an instance, as a person may."""
    world.end(machine, world.now(), "stranger")


def vanish(world: World, machine: Machine) -> None:
    """Let an instance be gone this moment."""
    world.remove(machine, world.now(), "vanished")


def set_status(world: World, machine: Machine, status: str) -> None:
    """Show another status, such as REPAIRING or SUSPENDED."""
    world.now()
    machine.status = status


def lose_address(world: World, machine: Machine) -> None:
    """Take an instance's external address away."""
    world.now()
    machine.nat_ip = None


def change_address(world: World, machine: Machine) -> str:
    """Give an instance another external address, and return it."""
    world.now()
    machine.nat_ip = world.new_address()
    return machine.nat_ip


def make(
    world: World,
    zone: str,
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    project: str = PROJECT,
) -> Machine:
    """Make an instance that runs, as a person may: a foreign one, or one with our labels."""
    now = world.now()
    machine = world.add(project, zone, a_body(zone, name, labels), "stranger", now)
    world.run(machine, now)
    return machine


def make_again(world: World, life: Life) -> Machine:
    """Make a deleted instance anew, with its name and labels. RefusedError 409 when it is there."""
    return make(world, life.zone, life.name, life.labels, project=life.project)


def a_body(zone: str, name: str, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the least that an insert needs."""
    return {
        "name": name,
        "labels": dict(labels or {}),
        "machineType": f"zones/{zone}/machineTypes/e2-micro",
        "disks": [
            {
                "boot": True,
                "autoDelete": True,
                "initializeParams": {
                    "sourceImage": "projects/debian-cloud/global/images/family/debian-12"
                },
            }
        ],
        "networkInterfaces": [
            {
                "network": "global/networks/default",
                "accessConfigs": [{"type": "ONE_TO_ONE_NAT", "name": "external-nat"}],
            }
        ],
    }

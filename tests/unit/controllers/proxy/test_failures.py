"""Which failures are told as Events: each class once, however its words change."""

from datetime import timedelta

import pytest

from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    PermanentProviderError,
    ProviderError,
    QuotaExceededError,
    TransientProviderError,
)
from tests.builders import a_proxy
from tests.worlds import World, a_running_world, a_world

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

MINUTE = timedelta(minutes=1)


def told(world: World, event: str) -> list[str]:
    return [message for _, reason, message in world.events.told if reason == event]


async def fail_in_turn(world: World, operation: str, *errors: ProviderError) -> None:
    """Let every error be met in passes of its own."""
    for error in errors:
        world.provider.heal()
        world.provider.fail(operation, error, times=None)  # type: ignore[arg-type]
        await world.run(6 * MINUTE)


async def test_words_that_change_within_a_class_are_told_once_and_shown():
    world = await a_world(a_proxy())
    errors = [TransientProviderError(f"no answer, try {number}") for number in range(3)]
    await fail_in_turn(world, "create", *errors)
    assert told(world, "ProvisioningFailed") == ["ProviderError: no answer, try 0"]
    row = await world.provisioned()
    assert (row.reason, row.message) == ("ProviderError", "no answer, try 2")


async def test_each_class_of_a_failure_is_told_when_the_condition_comes_to_it():
    world = await a_world(a_proxy())
    await fail_in_turn(
        world,
        "create",
        QuotaExceededError("four at most"),
        TransientProviderError("no answer"),
        QuotaExceededError("four at most"),
        EnvironmentProviderError("no rights"),
    )
    assert told(world, "ProvisioningFailed") == [
        "QuotaExceeded: four at most",
        "ProviderError: no answer",
        "QuotaExceeded: four at most",
        "PermanentError: no rights",
    ]
    assert (await world.provisioned()).reason == "PermanentError"


async def test_an_edit_that_fails_as_well_is_told():
    world = await a_world(a_proxy(port=4000))
    await fail_in_turn(world, "create", PermanentProviderError("port 4000 is forbidden"))
    world.provider.heal()
    world.provider.fail("create", PermanentProviderError("port 4001 is forbidden"), times=None)
    await world.apply(a_proxy(port=4001))
    await world.run(6 * MINUTE)
    assert told(world, "ProvisioningFailed") == [
        "PermanentError: port 4000 is forbidden",
        "PermanentError: port 4001 is forbidden",
    ]


async def test_a_fault_that_goes_on_to_block_deletion_is_told_as_that():
    world = await a_world(a_proxy())
    for operation in ("create", "get"):
        world.provider.fail(operation, TransientProviderError("no answer"), times=None)
    await world.run(6 * MINUTE)
    await world.delete()
    await world.run(6 * MINUTE)
    assert told(world, "ProvisioningFailed") == ["ProviderError: no answer"]
    assert told(world, "DeletionBlocked") == ["ProviderError: no answer"]


async def test_what_blocks_the_deletion_of_a_seen_instance_is_told_once_for_each_class():
    world = await a_running_world(a_proxy())
    await world.delete()
    await fail_in_turn(
        world,
        "get",
        TransientProviderError("no answer, try 0"),
        TransientProviderError("no answer, try 1"),
        EnvironmentProviderError("no rights"),
    )
    assert told(world, "DeletionBlocked") == [
        "ProviderError: no answer, try 0",
        "PermanentError: no rights",
    ]
    assert (await world.provisioned()).message == "PermanentError: deletion waits: no rights"

"""Spells in which some calls to the cloud go wrong."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from tests.fakes.compute.faults import (
    Delay,
    Effect,
    FailOperation,
    LoseReply,
    LoseRequest,
    Refuse,
)
from tests.fakes.compute.refusals import (
    forbidden,
    pool_exhausted,
    quota_exceeded,
    rate_limited,
    unavailable,
)
from tests.fakes.compute.world import World
from tests.simulation.plan import Happening


class Trouble(NamedTuple):
    """What goes wrong, and with which calls; none is all."""

    effect: Callable[[float], Effect]
    methods: tuple[str, ...] = ()


def _span(amount: float, longest: float) -> timedelta:
    return timedelta(seconds=amount * longest)


TROUBLES: Final = (
    Trouble(lambda _: LoseReply()),
    Trouble(lambda _: LoseReply(), ("insert",)),
    Trouble(lambda _: LoseReply(), ("insert", "delete")),
    Trouble(lambda _: LoseRequest()),
    Trouble(lambda a: Delay(before=_span(a, 25))),
    Trouble(lambda a: Delay(before=_span(a, 60)), ("insert", "delete")),
    Trouble(lambda a: Delay(after=_span(a, 40))),
    Trouble(lambda _: Refuse(rate_limited())),
    Trouble(lambda _: Refuse(unavailable())),
    Trouble(lambda _: Refuse(unavailable(), is_done=True), ("insert", "delete")),
    Trouble(lambda _: Refuse(forbidden())),
    Trouble(lambda _: Refuse(pool_exhausted()), ("insert",)),
    Trouble(lambda _: Refuse(quota_exceeded()), ("insert",)),
    Trouble(lambda a: FailOperation(after=_span(a, 60))),
    Trouble(lambda a: FailOperation(after=_span(a, 60), is_seen=True)),
    Trouble(lambda a: FailOperation("QUOTA_EXCEEDED", _span(a, 20))),
)


def make_trouble(world: World, troubles: Sequence[Trouble], happening: Happening) -> None:
    """Let one of the troubles last for a while."""
    trouble = troubles[happening.choice % len(troubles)]
    chance = 0.3 + 0.7 * (happening.choice // len(troubles) % 2)
    rule = world.faults.add(trouble.effect(happening.amount), *trouble.methods, chance=chance)
    span = 30 + happening.choice % 1200
    asyncio.get_running_loop().call_later(span, world.faults.remove, rule)

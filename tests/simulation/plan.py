"""From a seed to what will happen: pure, and complete, so that a plan can be read and replayed."""

from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Final, NamedTuple

from proxy_operator.provisioning.brake import BrakeLimits
from proxy_operator.runtime.objects import ObjectKey

HOUR: Final = 3600.0

WEIGHTS: Final = {
    # What people do.
    "create": 12,
    "delete": 9,
    "edit": 4,
    "move": 4,
    "rotate": 2,
    "withdraw": 2,
    "misspell": 2,
    # What happens to processes.
    "kill": 5,
    "die_at_call": 14,
    "hand_over": 6,
    "jump": 2,
    "store_trouble": 4,
    # What happens in the cloud.
    "cloud_trouble": 16,
    "blackout": 4,
    "preempt": 4,
    "vanish": 4,
    "address": 4,
    "relaunch": 4,
    "squat": 2,
    "usurp": 3,
    "puzzle": 3,
}
"""How often each kind happens, relative to the others."""


class Happening(NamedTuple):
    """One thing that happens. What `amount`, from 0 to 1, and `choice` mean is the deed's."""

    at: float
    kind: str
    cluster: int
    subject: int
    amount: float
    choice: int


def key_of_subject(happening: Happening) -> ObjectKey:
    """Return the key of the Proxy it happens to."""
    return ObjectKey("default", f"p{happening.subject}")


@dataclass(frozen=True)
class Plan:
    """One simulated fleet's life."""

    seed: int
    trouble: float
    """Seconds of happenings."""
    happenings: tuple[Happening, ...]
    proxies: tuple[int, ...] = (3, 2)
    """How many names each cluster has for its Proxies."""
    limits: tuple[BrakeLimits, ...] = (BrakeLimits(), BrakeLimits(2, 4))
    """What each cluster's operator may make: the second has room for what it needs, and no more."""
    request_memory: timedelta | None = None
    """How long the cloud remembers request ids; None is for ever."""
    drought: float = 75 * 60.0
    """Seconds in which no zone has room and nothing else goes wrong."""
    quiet: float = 3 * HOUR
    watch: float = 25 * 60.0
    """Seconds in which a settled fleet is restarted and looked at."""


def plan_of(seed: int, trouble: float = 10 * HOUR, per_hour: float = 20.0) -> Plan:
    """Return the plan of a seed: always the same one."""
    random = Random(seed)
    moments = sorted(random.uniform(0, trouble) for _ in range(int(trouble / HOUR * per_hour)))
    kinds, weights = [*WEIGHTS], [*WEIGHTS.values()]
    first = [
        Happening(float(n), "create", cluster, subject, random.random(), random.randrange(1 << 16))
        for n, (cluster, subject) in enumerate([(0, 0), (0, 1), (1, 0)])
    ]
    rest = [
        Happening(
            10 + at,
            random.choices(kinds, weights)[0],
            random.choices((0, 1), (3, 1))[0],
            random.randrange(6),
            random.random(),
            random.randrange(1 << 16),
        )
        for at in moments
    ]
    memory = (None, timedelta(minutes=10), timedelta())[seed % 3]
    return Plan(seed, trouble + 10, (*first, *rest), request_memory=memory)

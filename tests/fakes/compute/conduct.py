"""How this cloud behaves when nothing is wrong: what there is, how much of it, how long it takes.

All of it may be changed while the world runs; what was accepted before keeps its times.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

ZONES = ("europe-west1-b", "europe-west1-c", "us-central1-a")


@dataclass
class Timing:
    """Spans from the moment an insert was accepted, if not said otherwise."""

    appears: timedelta = timedelta(seconds=1)
    """From here on a get finds the instance: PROVISIONING."""
    stages: timedelta = timedelta(seconds=3)
    runs: timedelta = timedelta(seconds=8)
    nat_ip: timedelta = timedelta(seconds=0)
    """From running to having its external address."""
    stop: timedelta = timedelta(seconds=10)
    """From an accepted delete, or a preemption, to being gone (or TERMINATED)."""
    fails: timedelta = timedelta(seconds=5)
    """Until the operation of an insert for which there is no room says so."""


@dataclass
class Conduct:
    """The cloud's inventory and rules."""

    timing: Timing = field(default_factory=Timing)
    projects: set[str] = field(default_factory=lambda: {"fake-project"})
    zones: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(ZONES))
    """Every zone, and how many instances fit into it; None is any number."""
    quota: int | None = None
    """Instances per project."""
    quota_is_said_by: Literal["insert", "operation"] = "insert"
    missing: set[str] = field(default_factory=set)
    """Images and networks that do not exist, as the last part of their path."""
    page_size: int = 500
    """The most instances of one page, whatever a client asks for."""
    request_memory: timedelta | None = None
    """How long a requestId is remembered; None is for ever, zero is never."""
    unreachable: set[str] = field(default_factory=set)
    """Zones that answer nothing at the moment."""
    unreachable_is_said_by: set[Literal["unreachables", "warning", "scope"]] = field(
        default_factory=lambda: {"unreachables", "warning", "scope"}
    )
    """Where a list mentions unreachable zones: all three are ways the API has."""
    can_read: bool = True
    can_change: bool = True
    """Rights of the caller; without them every such call is 403 forbidden."""
    ip_prefix: str = "198.18"
    """The first two numbers of every external address."""

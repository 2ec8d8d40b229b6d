"""The catalogue of Events: every one the operator may emit, in one place.

Reasons are in the past tense; an Event marks a transition, never a state. Messages carry no
secret, request id or time, so that equal happenings aggregate.
"""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class EventType(StrEnum):
    """How loud an Event is."""

    NORMAL = "Normal"
    WARNING = "Warning"


class EventKind(NamedTuple):
    """A kind of happening: type, reason, and the action the operator was at."""

    type: EventType
    reason: str
    action: str


class RecordedEvent(NamedTuple):
    """What people are told of one happening, however often it happened."""

    event: EventKind
    message: str
    times: int
    first_seen_at: datetime
    last_seen_at: datetime


INSTANCE_REQUESTED = EventKind(EventType.NORMAL, "InstanceRequested", "Create")
INSTANCE_ADOPTED = EventKind(EventType.NORMAL, "InstanceAdopted", "Create")
INSTANCE_STARTED = EventKind(EventType.NORMAL, "InstanceStarted", "Create")
INSTANCE_VANISHED = EventKind(EventType.WARNING, "InstanceVanished", "Observe")
INSTANCE_STOPPED = EventKind(EventType.WARNING, "InstanceStopped", "Observe")
INSTANCE_NEVER_APPEARED = EventKind(EventType.WARNING, "InstanceNeverAppeared", "Create")
INSTANCE_REPLACED = EventKind(EventType.NORMAL, "InstanceReplaced", "Replace")
REPLACEMENT_BLOCKED = EventKind(EventType.WARNING, "ReplacementBlocked", "Replace")
INSTANCE_DELETED = EventKind(EventType.NORMAL, "InstanceDeleted", "Delete")
PROVISIONING_FAILED = EventKind(EventType.WARNING, "ProvisioningFailed", "Create")
DELETION_BLOCKED = EventKind(EventType.WARNING, "DeletionBlocked", "Delete")
BECAME_HEALTHY = EventKind(EventType.NORMAL, "BecameHealthy", "Probe")
BECAME_UNHEALTHY = EventKind(EventType.WARNING, "BecameUnhealthy", "Probe")
PROBE_DENIED = EventKind(EventType.WARNING, "ProbeDenied", "Probe")
VERDICT_HELD = EventKind(EventType.WARNING, "VerdictHeld", "Probe")
VERDICT_RELEASED = EventKind(EventType.NORMAL, "VerdictReleased", "Probe")
ORPHAN_DELETED = EventKind(EventType.WARNING, "OrphanDeleted", "CollectGarbage")

CATALOGUE = (
    INSTANCE_REQUESTED,
    INSTANCE_ADOPTED,
    INSTANCE_STARTED,
    INSTANCE_VANISHED,
    INSTANCE_STOPPED,
    INSTANCE_NEVER_APPEARED,
    INSTANCE_REPLACED,
    REPLACEMENT_BLOCKED,
    INSTANCE_DELETED,
    PROVISIONING_FAILED,
    DELETION_BLOCKED,
    BECAME_HEALTHY,
    BECAME_UNHEALTHY,
    PROBE_DENIED,
    VERDICT_HELD,
    VERDICT_RELEASED,
    ORPHAN_DELETED,
)

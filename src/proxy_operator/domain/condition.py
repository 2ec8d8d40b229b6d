"""Conditions: what is true of an object, why, and since when.

`last_transition_at` moves only when `status` flips, so an unchanged fault is no write.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta

MOST_MESSAGE: Final = 32768
DELETION_WAITS: Final = "deletion waits: "
"""In a message of Provisioned: what comes after it holds a deletion up."""


class ConditionStatus(StrEnum):
    """The three answers a condition can give."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class ConditionType(StrEnum):
    """The conditions a Proxy carries."""

    PROVISIONED = "Provisioned"
    HEALTHY = "Healthy"


class ProvisionedReason(StrEnum):
    """Why `Provisioned` has its status."""

    CREATED = "Created"
    EXTERNAL_ENDPOINT = "ExternalEndpoint"
    PROVISIONING = "Provisioning"
    REPLACING = "Replacing"
    DELETING = "Deleting"
    QUOTA_EXCEEDED = "QuotaExceeded"
    PERMANENT_ERROR = "PermanentError"
    CLOUD_INIT_ERROR = "CloudInitError"
    CREDENTIALS_ERROR = "CredentialsError"
    PROVIDER_ERROR = "ProviderError"
    INSTANCE_NEVER_APPEARED = "InstanceNeverAppeared"


class HealthyReason(StrEnum):
    """Why `Healthy` has its status."""

    PROBE_SUCCEEDED = "ProbeSucceeded"
    PROBE_FAILED = "ProbeFailed"
    AUTH_FAILED = "AuthFailed"
    NOT_ALLOWED = "NotAllowed"
    NOT_PROVISIONED = "NotProvisioned"
    NOT_PROBED = "NotProbed"
    NO_PROBE_TARGET = "NoProbeTarget"


class Condition(
    msgspec.Struct,
    kw_only=True,
    frozen=True,
    gc=False,
    rename={"last_transition_at": "lastTransitionTime"},
):
    """One row of `status.conditions`. Messages carry no request ids or times."""

    type: Annotated[str, Meta(max_length=316, description="What the row is about.")]
    status: Annotated[ConditionStatus, Meta(description="Whether it is so.")]
    reason: Annotated[str, Meta(max_length=1024, description="Why, in one word.")]
    last_transition_at: Annotated[datetime, Meta(description="When the status last changed.")]
    message: Annotated[str, Meta(max_length=MOST_MESSAGE, description="Why, in a sentence.")] = ""
    observed_generation: Annotated[
        int,
        Meta(
            ge=0,
            description="The generation of the spec that the row is about.",
            extra_json_schema={"format": "int64"},
        ),
    ] = msgspec.field(default=0, name="observedGeneration")


def find(conditions: Sequence[Condition], kind: ConditionType) -> Condition | None:
    """Return the condition of that type, or None."""
    for condition in conditions:
        if condition.type == kind:
            return condition
    return None


def is_true(conditions: Sequence[Condition], kind: ConditionType) -> bool:
    """Tell whether that condition is present and True."""
    found = find(conditions, kind)
    return found is not None and found.status is ConditionStatus.TRUE


def with_condition(  # noqa: PLR0913 - one argument per field of the row
    conditions: Sequence[Condition],
    kind: ConditionType,
    *,
    status: ConditionStatus,
    reason: str,
    message: str,
    observed_generation: int,
    now: datetime,
) -> tuple[Condition, ...]:
    """Return the conditions with one row replaced or appended, order kept.

    The moment of transition is the old one unless `status` differs. A message longer than the
    schema allows is cut: a status that is refused would never say anything again.
    """
    old = find(conditions, kind)
    row = Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message[:MOST_MESSAGE],
        observed_generation=observed_generation,
        last_transition_at=old.last_transition_at if old and old.status is status else now,
    )
    if old is None:
        return (*conditions, row)
    return tuple(row if c.type == kind else c for c in conditions)

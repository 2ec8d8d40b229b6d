"""Provider errors as conditions: one table, and one rule.

The rule: what fails after an instance was seen changes a message, never `Provisioned` itself.
"""

from datetime import datetime, timedelta

from proxy_operator.controllers.proxy.context import Pass
from proxy_operator.controllers.proxy.inputs import InputsError
from proxy_operator.controllers.proxy.readiness import represent_health
from proxy_operator.domain.condition import (
    DELETION_WAITS,
    Condition,
    ConditionStatus,
    ConditionType,
    ProvisionedReason,
)
from proxy_operator.domain.event import DELETION_BLOCKED, PROVISIONING_FAILED
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    PermanentProviderError,
    ProviderError,
    QuotaExceededError,
)
from proxy_operator.runtime.reconciler import Result


def reason_of(err: ProviderError) -> ProvisionedReason:
    """Return the condition's reason for a provider error."""
    match err:
        case QuotaExceededError():
            return ProvisionedReason.QUOTA_EXCEEDED
        case PermanentProviderError() | EnvironmentProviderError():
            return ProvisionedReason.PERMANENT_ERROR
        case _:
            return ProvisionedReason.PROVIDER_ERROR


def show_provider_error(p: Pass, err: ProviderError) -> Result:
    """Stage what went wrong, and return when to try again.

    An error that may pass by itself is raised again: the controller backs off.
    """
    reason = reason_of(err)
    show(p, reason, str(err))
    if reason is ProvisionedReason.PROVIDER_ERROR:
        raise err
    return Result(p.intervals.quota_retry)


def show_inputs_error(p: Pass, err: InputsError) -> Result:
    """Stage that a Secret is missing. Its arrival is an event; the slow poll is for safety."""
    show(p, err.reason, err.message)
    return Result(p.intervals.drift_poll)


def show(p: Pass, reason: ProvisionedReason, message: str) -> None:
    """Stage a failure: in the message where an instance was seen, else as the condition.

    An Event tells when the class of failure, the spec, or what is held up by it has changed, and
    not when its words have: some providers never say the same twice.
    """
    row, is_deleting = p.provisioned, p.proxy.metadata.is_deleting
    told = f"{reason}: {message}"
    if is_deleting:
        message = f"{DELETION_WAITS}{message}"
    if row is not None and p.has_appeared:
        if is_deleting and not row.message.startswith(f"{reason}: {DELETION_WAITS}"):
            p.tell(DELETION_BLOCKED, told)
        status = ConditionStatus(row.status)
        p.set_condition(ConditionType.PROVISIONED, status, row.reason, f"{reason}: {message}")
        if p.is_provisioned:
            represent_health(p)
        return
    if row is None or not _is_same(p, row, reason):
        p.tell(DELETION_BLOCKED if is_deleting else PROVISIONING_FAILED, told)
    p.set_unprovisioned(reason, message)


def _is_same(p: Pass, row: Condition, reason: ProvisionedReason) -> bool:
    return (
        row.reason == reason
        and row.observed_generation == p.proxy.metadata.generation
        and row.message.startswith(DELETION_WAITS) == p.proxy.metadata.is_deleting
    )


def wait(span: timedelta) -> Result:
    """Return a wait of at least a moment, so that a due time just reached is no busy loop."""
    return Result(max(span, timedelta(milliseconds=10)))


def look_again(p: Pass, since: datetime, until: datetime) -> Result:
    """Return when to look again for what may come between two moments.

    What comes late comes soon, as a rule: in ever longer steps, and at the end.
    """
    step = max(p.intervals.deletion_poll, (p.now - since) / 2)
    return wait(min(until - p.now, step))

"""Replacement: an instance that serves goes only when another may follow it.

The rule: the provider is asked first (`check`); what it would refuse leaves everything as it is.
"""

from typing import Final

from proxy_operator.controllers.proxy.context import Pass
from proxy_operator.controllers.proxy.failures import reason_of, show_provider_error
from proxy_operator.controllers.proxy.inputs import Inputs, create_request
from proxy_operator.domain.condition import ConditionType, ProvisionedReason, find
from proxy_operator.domain.event import INSTANCE_REPLACED, REPLACEMENT_BLOCKED
from proxy_operator.domain.instance import Instance, InstanceState
from proxy_operator.domain.names import SPEC_HASH_LABEL
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.errors import ProviderError, StockOutError
from proxy_operator.runtime.reconciler import Result

_REPLACED: Final = "the instance is replaced: "
_WORTH_KEEPING: Final = {InstanceState.PROVISIONING, InstanceState.RUNNING}


def is_outdated(p: Pass, instance: Instance, inputs: Inputs) -> bool:
    """Tell whether the instance was made from another spec or other Secrets."""
    actual = instance.labels.get(SPEC_HASH_LABEL) or p.recorded_hash
    return bool(actual) and actual != inputs.spec_hash


async def refusal_of(
    p: Pass, provider: Provider, instance: Instance, inputs: Inputs
) -> ProviderError | None:
    """Return why the instance must not make room for another one yet, or None."""
    if instance.state not in _WORTH_KEEPING:
        return None
    refusal: ProviderError | None = None
    for zone in provider.placements(p.proxy.spec):
        try:
            await provider.check(create_request(p, inputs, zone=zone, request_id=""))
        except StockOutError as err:
            refusal = err  # the next zone may have what this one has not
        except ProviderError as err:
            return err
        else:
            return None
    return refusal


def show_refusal(p: Pass, refusal: ProviderError) -> Result:
    """Stage why the instance is still the old one, and return when to ask again."""
    before = find(p.stored.status.conditions, ConditionType.PROVISIONED)
    shown = f"{reason_of(refusal)}: {refusal}"
    if before is None or before.message != shown:
        p.tell(REPLACEMENT_BLOCKED, shown)
    return show_provider_error(p, refusal)


async def recycle(p: Pass, provider: Provider, instance: Instance, why: str) -> Result:
    """Let the instance go; the next pass that finds it gone makes another."""
    row = p.provisioned
    is_first = row is None or row.reason != ProvisionedReason.REPLACING
    if instance.state is not InstanceState.TERMINATING:
        await provider.delete(instance.provider_id)
    if is_first:
        p.tell(INSTANCE_REPLACED, f"instance {instance.provider_id} is replaced: {why}")
    shown = f"{_REPLACED}{why}"
    if row and not is_first and row.message.startswith(_REPLACED):
        shown = row.message  # why it was asked to go, not that it goes
    p.set_unprovisioned(ProvisionedReason.REPLACING, shown)
    return Result(p.first_look if is_first else p.intervals.deletion_poll)

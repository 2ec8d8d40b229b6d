"""Make an instance where there is none: find a lost one, clear leftovers, write down, ask.

The order is the point: nothing is asked of a provider before the intent is stored.
"""

from proxy_operator.controllers.proxy.context import Pass
from proxy_operator.controllers.proxy.failures import look_again, show_provider_error, wait
from proxy_operator.controllers.proxy.follow import follow_instance, require_ours
from proxy_operator.controllers.proxy.inputs import Inputs, create_request
from proxy_operator.controllers.proxy.refusal import record_refusal
from proxy_operator.controllers.proxy.retry import (
    next_attempt,
    next_zone,
    request_id_of,
    retry_at,
    unsettled_at,
)
from proxy_operator.domain.condition import ProvisionedReason
from proxy_operator.domain.event import INSTANCE_ADOPTED, INSTANCE_REQUESTED
from proxy_operator.domain.instance import (
    REFUSED,
    ROTATES,
    Instance,
    InstanceState,
    Intent,
    Outcome,
)
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    InstanceNotFoundError,
    PermanentProviderError,
    ProviderError,
    QuotaExceededError,
)
from proxy_operator.runtime.reconciler import Result


async def provision(p: Pass, provider: Provider, inputs: Inputs) -> Result:
    """Come from "no instance is recorded" to one that is asked for."""
    intent = p.intent(provider)
    if intent is None:
        return await _create(p, provider, inputs, None)
    if _is_latched(p, intent, inputs):
        return Result()
    try:
        lost = await _find_lost(p, provider, intent)
        if lost is not None:
            p.proxy.status.provider_id = lost.provider_id
            p.tell(INSTANCE_ADOPTED, f"instance {lost.provider_id} of an earlier create was found")
            return await follow_instance(p, provider, lost, inputs)
        due = retry_at(intent, p.intervals)
        if due is not None and p.now < due and _is_same_request(p, intent, inputs):
            return wait(due - p.now)
        held_up = await _clear_other_zones(p, provider, intent, inputs)
    except ProviderError as err:
        return show_provider_error(p, err)
    return held_up or await _create(p, provider, inputs, intent)


def _is_same_request(p: Pass, intent: Intent, inputs: Inputs) -> bool:
    row = p.provisioned
    return (
        row is not None
        and row.observed_generation == p.proxy.metadata.generation
        and intent.spec_hash == inputs.spec_hash
    )


def _is_latched(p: Pass, intent: Intent, inputs: Inputs) -> bool:
    row = p.provisioned
    return (
        intent.outcome is Outcome.REJECTED
        and row is not None
        and row.reason == ProvisionedReason.PERMANENT_ERROR
        and _is_same_request(p, intent, inputs)
    )


async def _find_lost(p: Pass, provider: Provider, intent: Intent) -> Instance | None:
    """Look where the intent points; an instance there is adopted whatever its state."""
    sent_at = unsettled_at(intent, provider.appears_within, p.now)
    if intent.outcome in REFUSED and sent_at is None:
        return None
    try:
        instance = await provider.get(p.id_in(provider, intent.zone))
    except InstanceNotFoundError:
        return None
    require_ours(p, instance)
    if sent_at is not None and sent_at != intent.unsettled_at:
        # It may have come of a create before the last one, which is then still to come.
        await p.record_intent(intent.unsettled())
    return instance


async def _clear_other_zones(
    p: Pass, provider: Provider, intent: Intent, inputs: Inputs
) -> Result | None:
    """See to it that no other zone holds, or will hold, an instance of an earlier attempt."""
    zone = next_zone(provider.placements(p.proxy.spec), intent, inputs.spec_hash)
    if await delete_in_zones(p, provider, [z for z in (intent.zone, *intent.zones) if z != zone]):
        p.set_unprovisioned(
            ProvisionedReason.PROVISIONING, "an instance in another zone must go first"
        )
        return Result(p.intervals.deletion_poll)
    sent_at = unsettled_at(intent, provider.appears_within, p.now)
    if zone == intent.zone or sent_at is None or intent.outcome in ROTATES:
        return None
    p.set_unprovisioned(
        ProvisionedReason.PROVISIONING,
        f"an unanswered create in zone {intent.zone or 'default'} may still succeed",
    )
    return look_again(p, sent_at, sent_at + provider.appears_within)


async def delete_in_zones(p: Pass, provider: Provider, zones: list[str]) -> bool:
    """Ask our instances in these zones to go; True while any is left."""
    is_left = False
    for zone in zones:
        try:
            instance = await provider.get(p.id_in(provider, zone))
        except InstanceNotFoundError:
            continue
        if not p.is_ours(instance.labels):
            continue
        is_left = True
        if instance.state is not InstanceState.TERMINATING:
            await provider.delete(instance.provider_id)
    return is_left


async def _create(p: Pass, provider: Provider, inputs: Inputs, old: Intent | None) -> Result:
    intent = _next_intent(p, provider, inputs, old)
    await p.record_intent(intent)
    p.around.made_with.note(p.uid, inputs.credentials)
    try:
        provider_id = await provider.create(
            create_request(p, inputs, zone=intent.zone, request_id=intent.request_id)
        )
    except (QuotaExceededError, PermanentProviderError, EnvironmentProviderError) as err:
        return await record_refusal(p, intent, err)
    except ProviderError as err:
        return show_provider_error(p, err)
    p.proxy.status.provider_id = provider_id
    p.set_unprovisioned(ProvisionedReason.PROVISIONING, "the instance was requested")
    p.tell(INSTANCE_REQUESTED, f"instance {provider_id} was requested")
    return Result(p.first_look)


def _next_intent(p: Pass, provider: Provider, inputs: Inputs, old: Intent | None) -> Intent:
    now, within = p.around.clock.now(), provider.appears_within
    zone = next_zone(provider.placements(p.proxy.spec), old, inputs.spec_hash)
    sent_at = None if old is None else unsettled_at(old, within, now)
    is_late = sent_at is not None or (old is not None and old.outcome is Outcome.NEVER_APPEARED)
    return Intent(
        attempt=next_attempt(old, inputs.spec_hash),
        request_id=request_id_of(old, zone, inputs.spec_hash, now, within),
        spec_hash=inputs.spec_hash,
        created_at=now,
        account=provider.account,
        cluster_id=p.around.cluster_id,
        zone=zone,
        # An instance that did not appear in time may still do so: remember where.
        zones=tuple(sorted({old.zone, *old.zones} - {zone})) if old and is_late else (),
        unsettled_at=sent_at,
    )

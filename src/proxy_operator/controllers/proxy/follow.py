"""Follow an instance that is recorded: wait for it, show it, or let it be replaced."""

from typing import Final

from proxy_operator.controllers.proxy.ask_again import ask_again, is_answer_due
from proxy_operator.controllers.proxy.context import Pass
from proxy_operator.controllers.proxy.failures import reason_of, show_provider_error
from proxy_operator.controllers.proxy.inputs import Inputs, InputsError
from proxy_operator.controllers.proxy.readiness import represent_health, set_address
from proxy_operator.controllers.proxy.replace import (
    is_outdated,
    recycle,
    refusal_of,
    show_refusal,
)
from proxy_operator.controllers.proxy.retry import appear_backoff, unsettled_at
from proxy_operator.domain.condition import ConditionStatus, ConditionType, ProvisionedReason
from proxy_operator.domain.event import (
    INSTANCE_NEVER_APPEARED,
    INSTANCE_STARTED,
    INSTANCE_STOPPED,
    INSTANCE_VANISHED,
)
from proxy_operator.domain.instance import SETTLED, Instance, InstanceState, Intent, Outcome
from proxy_operator.domain.names import SPEC_HASH_ANNOTATION
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    InstanceNotFoundError,
    ProviderError,
)
from proxy_operator.runtime.objects import MetadataPatch
from proxy_operator.runtime.reconciler import Result

_DEFAULT_PORT: Final = 3128


async def follow(
    p: Pass, provider: Provider, provider_id: str, inputs: Inputs | InputsError
) -> Result:
    """Ask the provider about the recorded instance and act on the answer."""
    try:
        instance: Instance | None = await provider.get(provider_id)
    except InstanceNotFoundError:
        instance = None
    except ProviderError as err:
        return show_provider_error(p, err)
    try:
        if instance is None:
            return await _missing(p, provider, inputs)
        return await follow_instance(p, provider, instance, inputs)
    except ProviderError as err:
        return show_provider_error(p, err)


async def follow_instance(
    p: Pass, provider: Provider, instance: Instance, inputs: Inputs | InputsError
) -> Result:
    """Act on an instance that exists. Provider errors are the caller's to show."""
    require_ours(p, instance)
    if not isinstance(inputs, Inputs) or not is_outdated(p, instance, inputs):
        return await _act(p, provider, instance, inputs)
    refusal = await refusal_of(p, provider, instance, inputs)
    if refusal is None:
        return await recycle(p, provider, instance, "its spec or Secret changed")
    held_back = InputsError(reason_of(refusal), str(refusal))
    result = await _act(p, provider, instance, held_back)
    return show_refusal(p, refusal) if p.is_provisioned else result


async def _act(
    p: Pass, provider: Provider, instance: Instance, inputs: Inputs | InputsError
) -> Result:
    match instance.state:
        case InstanceState.PROVISIONING:
            p.around.seen[p.uid] = instance.provider_id
            obstacle = f": {instance.message}" if instance.message else ""
            p.set_unprovisioned(
                ProvisionedReason.PROVISIONING, f"the instance is starting{obstacle}"
            )
            return Result(p.intervals.provisioning_poll)
        case InstanceState.RUNNING:
            return await _running(p, provider, instance, inputs)
        case InstanceState.STOPPED:
            if p.is_provisioned:
                p.tell(INSTANCE_STOPPED, f"instance {instance.provider_id} stopped")
            ended = f": {instance.message}" if instance.message else ""
            return await recycle(p, provider, instance, f"it stopped{ended}")
        case InstanceState.TERMINATING:
            return await recycle(p, provider, instance, "it is going away")


def require_ours(p: Pass, instance: Instance) -> None:
    """Raise EnvironmentProviderError for an instance of our name that somebody else owns."""
    if not p.is_ours(instance.labels):
        raise EnvironmentProviderError(
            f"the name {p.instance_name} is taken by a foreign instance: {instance.provider_id}"
            " does not carry this operator's labels"
        )


async def _missing(p: Pass, provider: Provider, inputs: Inputs | InputsError) -> Result:
    """Tell an instance that has gone from one that has yet to appear."""
    if p.has_appeared:
        if p.is_provisioned:
            p.tell(INSTANCE_VANISHED, f"instance {p.proxy.status.provider_id} is gone")
        await _note_gone(p, provider)
        # Status first, the next create in a later pass: no status may claim to have seen the
        # instance of a create that came after it.
        p.forget_instance(ProvisionedReason.PROVISIONING, "the instance is gone, a new one follows")
        return Result(p.intervals.requeue_now)
    if isinstance(inputs, Inputs) and p.recorded_hash != inputs.spec_hash:
        p.forget_instance(ProvisionedReason.PROVISIONING, "the spec changed before it appeared")
        return Result(p.intervals.requeue_now)
    intent = p.intent(provider)
    if intent and isinstance(inputs, Inputs):
        refused = await ask_again(p, provider, inputs, intent)
        if refused is not None:
            return refused
    if intent and _may_still_appear(p, provider, intent):
        p.set_unprovisioned(ProvisionedReason.PROVISIONING, "the instance has yet to appear")
        return Result(p.intervals.provisioning_poll)
    if intent and intent.outcome is not Outcome.NEVER_APPEARED:
        await p.record_intent(intent.settled(Outcome.NEVER_APPEARED, p.now))
    message = "the create was accepted, but no instance came of it"
    p.tell(INSTANCE_NEVER_APPEARED, message)
    p.forget_instance(ProvisionedReason.INSTANCE_NEVER_APPEARED, message)
    return Result(appear_backoff(intent.attempt if intent else 1))


async def _note_gone(p: Pass, provider: Provider) -> None:
    """Write down that nothing more will come of a create, as long as it could be thought so."""
    intent = p.intent(provider)
    if (
        intent is not None
        and intent.outcome not in SETTLED
        and p.now < intent.created_at + provider.appears_within
    ):
        await p.record_intent(intent.settled(Outcome.GONE, p.now))


def _may_still_appear(p: Pass, provider: Provider, intent: Intent) -> bool:
    if p.now >= intent.created_at + p.intervals.appear_deadline:
        return False
    was_seen = p.around.seen.get(p.uid) == p.proxy.status.provider_id
    return not was_seen or is_answer_due(p, provider, intent)


async def _running(
    p: Pass, provider: Provider, instance: Instance, inputs: Inputs | InputsError
) -> Result:
    if instance.ip is None:
        p.set_unprovisioned(ProvisionedReason.PROVISIONING, "the instance has no address yet")
        return Result(p.intervals.provisioning_poll)
    is_new = not p.is_provisioned
    if is_new:
        await _settle(p, provider)
        p.tell(INSTANCE_STARTED, f"instance {instance.provider_id} runs")
    if isinstance(inputs, Inputs):
        p.around.made_with.note(p.uid, inputs.credentials)
    if isinstance(inputs, Inputs) and p.recorded_hash != inputs.spec_hash:
        await p.patch_metadata(MetadataPatch(annotations={SPEC_HASH_ANNOTATION: inputs.spec_hash}))
    p.forget_waiting()
    p.proxy.status.provider_id = instance.provider_id
    message = instance.message
    if isinstance(inputs, InputsError):
        message = f"{inputs.reason}: {inputs.message}"
    p.set_condition(
        ConditionType.PROVISIONED, ConditionStatus.TRUE, ProvisionedReason.CREATED, message
    )
    set_address(p, instance.ip, instance.port or _port_of_spec(p, inputs))
    represent_health(p)
    return Result(p.intervals.drift_poll)


def _port_of_spec(p: Pass, inputs: Inputs | InputsError) -> int:
    """Return the port of a provider that tells none: the one the instance was made for."""
    shown = p.proxy.status.port if isinstance(inputs, InputsError) else None
    return shown or p.proxy.spec.port or _DEFAULT_PORT


async def _settle(p: Pass, provider: Provider) -> None:
    """Once an instance runs: start counting attempts anew, clear what other zones still hold."""
    intent = p.intent(provider)
    if intent is None:
        return
    for zone in intent.zones:
        try:
            late = await provider.get(p.id_in(provider, zone))
        except InstanceNotFoundError:
            continue
        if p.is_ours(late.labels) and late.state is not InstanceState.TERMINATING:
            await provider.delete(late.provider_id)
    if intent.attempt > 1 or intent.outcome is not Outcome.UNKNOWN:
        sent_at = unsettled_at(intent, provider.appears_within, p.now, has_appeared=True)
        await p.record_intent(intent.ran(are_others_clear=sent_at is None))

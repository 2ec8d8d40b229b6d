"""Deletion: nothing leaves until the provider says that it is gone."""

from proxy_operator.controllers.proxy.context import Pass
from proxy_operator.controllers.proxy.failures import look_again, show_provider_error
from proxy_operator.controllers.proxy.reach import require_reach
from proxy_operator.controllers.proxy.retry import unsettled_at
from proxy_operator.domain.condition import DELETION_WAITS, ProvisionedReason
from proxy_operator.domain.event import INSTANCE_DELETED
from proxy_operator.domain.instance import InstanceState, Intent
from proxy_operator.domain.names import FINALIZER, INTENT_ANNOTATION
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.errors import InstanceNotFoundError, ProviderError
from proxy_operator.runtime.objects import MetadataPatch
from proxy_operator.runtime.reconciler import Result


async def finalize(p: Pass) -> Result:
    """Delete the instance wherever it may be, then drop the finalizer."""
    if FINALIZER not in p.proxy.metadata.finalizers:
        return Result()
    if p.proxy.status.provider_id is None and INTENT_ANNOTATION not in p.proxy.metadata.annotations:
        await _drop_finalizer(p)
        return Result()
    try:
        provider = p.ports.providers.get(p.proxy.spec.provider or "")
        require_reach(p, provider)
        intent = p.intent(provider)
        if await _delete_all(p, provider, intent):
            is_first = p.provisioned is None or p.provisioned.reason != ProvisionedReason.DELETING
            p.set_unprovisioned(ProvisionedReason.DELETING, "the instance is being deleted")
            return Result(p.first_look if is_first else p.intervals.deletion_poll)
    except ProviderError as err:
        return show_provider_error(p, err)
    within, sent_at = provider.appears_within, None
    if intent is not None:
        sent_at = unsettled_at(intent, within, p.now, has_appeared=p.has_appeared)
    if sent_at is not None:
        p.set_unprovisioned(
            ProvisionedReason.DELETING if p.has_appeared else ProvisionedReason.PROVISIONING,
            f"{DELETION_WAITS}an unanswered create may still succeed",
        )
        return look_again(p, sent_at, sent_at + within)
    if p.has_appeared:
        p.tell(INSTANCE_DELETED, "the instance is gone")
    await _drop_finalizer(p)
    return Result()


async def _delete_all(p: Pass, provider: Provider, intent: Intent | None) -> bool:
    """Ask every instance that may be ours to go; True while any is left."""
    ids = [p.proxy.status.provider_id] if p.proxy.status.provider_id else []
    if intent is not None:
        ids += [p.id_in(provider, zone) for zone in (intent.zone, *intent.zones)]
    is_left = False
    for provider_id in dict.fromkeys(ids):
        try:
            instance = await provider.get(provider_id)
        except InstanceNotFoundError:
            continue
        if not p.is_ours(instance.labels):
            continue
        is_left = True
        if instance.state is not InstanceState.TERMINATING:
            await provider.delete(provider_id)
    return is_left


async def _drop_finalizer(p: Pass) -> None:
    rest = tuple(f for f in p.proxy.metadata.finalizers if f != FINALIZER)
    await p.patch_metadata(MetadataPatch(finalizers=rest))
    p.forget_waiting()
    p.is_gone = not rest

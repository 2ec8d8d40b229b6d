"""Ask again for a create that was accepted and whose instance does not appear.

The rule: only with the request id of the first, so that nothing new is made, and never for a
Proxy that is being deleted.
"""

from proxy_operator.controllers.proxy.context import Pass
from proxy_operator.controllers.proxy.inputs import Inputs, create_request
from proxy_operator.controllers.proxy.refusal import record_refusal
from proxy_operator.domain.instance import Intent, Outcome
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.errors import PermanentProviderError, QuotaExceededError
from proxy_operator.runtime.reconciler import Result


def is_answer_due(p: Pass, provider: Provider, intent: Intent) -> bool:
    """Tell whether it has yet to be asked, for the first time, what came of the create."""
    return bool(provider.asks_again_after) and _asked(p, intent) == 0


async def ask_again(p: Pass, provider: Provider, inputs: Inputs, intent: Intent) -> Result | None:
    """Ask what came of the create if it is time to; a Result once that is known to be nothing."""
    due = sum(p.now >= intent.created_at + after for after in provider.asks_again_after)
    if due <= _asked(p, intent) or not _is_pending(p, provider, inputs, intent):
        return None
    p.around.asked[p.uid] = (intent.request_id, due)
    try:
        await provider.create(
            create_request(
                p, inputs, zone=intent.zone, request_id=intent.request_id, is_repeated=True
            )
        )
    except (QuotaExceededError, PermanentProviderError) as err:
        p.proxy.status.provider_id = None
        p.forget_waiting()
        return await record_refusal(p, intent, err)
    return None


def _asked(p: Pass, intent: Intent) -> int:
    request_id, times = p.around.asked.get(p.uid, ("", 0))
    return times if request_id == intent.request_id else 0


def _is_pending(p: Pass, provider: Provider, inputs: Inputs, intent: Intent) -> bool:
    """Tell whether the instance that is waited for is the one of this very create."""
    return (
        intent.outcome is Outcome.UNKNOWN
        and bool(intent.request_id)
        and intent.spec_hash == inputs.spec_hash
        and p.id_in(provider, intent.zone) == p.proxy.status.provider_id
    )

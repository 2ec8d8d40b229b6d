"""What a provider refused: written down, so that neither retry nor deletion has to wait for it."""

from typing import Final

from proxy_operator.controllers.proxy.context import Pass
from proxy_operator.controllers.proxy.failures import reason_of, show, wait
from proxy_operator.controllers.proxy.retry import appear_backoff
from proxy_operator.domain.instance import Intent, Outcome
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    PermanentProviderError,
    ProviderError,
    QuotaExceededError,
    StockOutError,
)
from proxy_operator.runtime.reconciler import Result

_OUTCOMES: Final[tuple[tuple[type[ProviderError], Outcome], ...]] = (
    (StockOutError, Outcome.STOCK_OUT),
    (QuotaExceededError, Outcome.QUOTA),
    (PermanentProviderError, Outcome.REJECTED),
    (EnvironmentProviderError, Outcome.DENIED),
)


async def record_refusal(
    p: Pass,
    intent: Intent,
    err: QuotaExceededError | PermanentProviderError | EnvironmentProviderError,
) -> Result:
    """Record that nothing came of the create and show why; return when to try again."""
    outcome = next(outcome for kind, outcome in _OUTCOMES if isinstance(err, kind))
    now, after = p.around.clock.now(), getattr(err, "retry_after", None)
    retry_at = now + after if after is not None and outcome is Outcome.QUOTA else None
    await p.record_intent(intent.settled(outcome, now, retry_at))
    show(p, reason_of(err), str(err))
    if outcome is Outcome.REJECTED:
        return Result()
    if outcome is Outcome.STOCK_OUT:
        return Result(appear_backoff(intent.attempt))
    return Result(p.intervals.quota_retry) if retry_at is None else wait(retry_at - now)

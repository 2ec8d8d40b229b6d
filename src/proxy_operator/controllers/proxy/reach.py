"""Whether this operator can see the instance of a Proxy at all.

With another project, or another cluster id, every instance looks gone or foreign. The rule: what an
intent says of the operator that wrote it is believed only beside an instance that is recorded or
may be on its way; a Proxy that was restored from a backup carries an intent of another life.
"""

from proxy_operator.controllers.proxy.context import Pass
from proxy_operator.controllers.proxy.retry import unsettled_at
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.errors import EnvironmentProviderError


def require_reach(p: Pass, provider: Provider) -> None:
    """Raise EnvironmentProviderError when only another operator can see the instance."""
    intent = p.intent(provider)
    if intent is None:
        return
    is_pending = unsettled_at(intent, provider.appears_within, p.now) is not None
    if p.proxy.status.provider_id is None and not is_pending:
        return
    for what, then, now in (
        ("project", intent.account, provider.account),
        ("cluster id", intent.cluster_id, p.around.cluster_id),
    ):
        if then not in {"", now}:
            raise EnvironmentProviderError(
                f"the instance was made with {what} {then!r}, and this operator has {now!r}:"
                f" run it with {then!r}, at least until this Proxy is deleted"
            )

"""The order of steps, and the one status write."""

from typing import Final

from proxy_operator.controllers.proxy.context import Pass, Surroundings
from proxy_operator.controllers.proxy.failures import show_inputs_error, show_provider_error
from proxy_operator.controllers.proxy.finalize import finalize
from proxy_operator.controllers.proxy.follow import follow
from proxy_operator.controllers.proxy.inputs import InputsError, gather_inputs
from proxy_operator.controllers.proxy.provision import provision
from proxy_operator.controllers.proxy.reach import require_reach
from proxy_operator.controllers.proxy.readiness import represent_health, set_address
from proxy_operator.domain.condition import ConditionStatus, ConditionType, ProvisionedReason
from proxy_operator.domain.phase import compute_phase
from proxy_operator.domain.proxy import Proxy
from proxy_operator.provisioning.errors import EnvironmentProviderError, ProviderError
from proxy_operator.runtime.errors import ConflictError, NotFoundError
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.reconciler import Result

_STATUS_TRIES: Final = 5


class ProxyReconciler:
    """Brings one Proxy closer to what it asks for."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around

    async def reconcile(self, key: ObjectKey) -> Result:
        """Run one pass. ProviderError and ObjectError mean: again, with backoff."""
        stored = self._around.ports.proxies.get(key)
        if stored is None:
            return Result()
        p = Pass(self._around, stored, stored.draft(), self._around.clock.now())
        try:
            result = await _dispatch(p)
        except ProviderError:
            await _write_status(p)
            raise
        await _write_status(p)
        return result


async def _dispatch(p: Pass) -> Result:
    if p.proxy.metadata.is_deleting:
        return await finalize(p)
    if not p.proxy.is_managed:
        return _external(p)
    try:
        provider = p.ports.providers.get(p.proxy.spec.provider or "")
        require_reach(p, provider)
    except EnvironmentProviderError as err:
        return show_provider_error(p, err)
    inputs = await gather_inputs(p)
    if p.proxy.status.provider_id:
        return await follow(p, provider, p.proxy.status.provider_id, inputs)
    if isinstance(inputs, InputsError):
        return show_inputs_error(p, inputs)
    return await provision(p, provider, inputs)


def _external(p: Pass) -> Result:
    """Show somebody else's proxy; no finalizer, no provider."""
    endpoint = p.proxy.spec.endpoint
    if endpoint is None:
        # Admission refuses this; an object from before the rule must not stop the loop.
        p.set_unprovisioned(ProvisionedReason.PERMANENT_ERROR, "spec.endpoint is missing")
        return Result()
    message = ""
    try:
        p.ports.secrets.credentials_for(p.proxy)
    except ValueError as err:
        message = f"{ProvisionedReason.CREDENTIALS_ERROR}: {err}"
    p.set_condition(
        ConditionType.PROVISIONED,
        ConditionStatus.TRUE,
        ProvisionedReason.EXTERNAL_ENDPOINT,
        message,
    )
    set_address(p, endpoint.host, endpoint.port)
    represent_health(p)
    return Result()


async def _write_status(p: Pass) -> None:
    """Write the status if the pass changed it; on a conflict re-read and write it there."""
    if p.is_gone:
        return
    client = p.ports.client
    before = p.stored.status
    for _ in range(_STATUS_TRIES):
        p.proxy.status.observed_generation = p.stored.metadata.generation
        p.proxy.status.phase = compute_phase(p.proxy)
        if p.proxy.status == before:
            return
        try:
            await client.patch_status(p.proxy)
        except NotFoundError:
            return
        except ConflictError:
            fresh = await _reread(p)
            if fresh is None:
                return
            p.proxy.metadata, before = fresh.metadata, fresh.status
        else:
            return
    raise ConflictError(f"the status of {p.key} kept changing under the write")


async def _reread(p: Pass) -> Proxy | None:
    try:
        fresh = await p.ports.client.get(Proxy, p.key)
    except NotFoundError:
        return None
    return fresh if fresh.metadata.uid == p.uid else None

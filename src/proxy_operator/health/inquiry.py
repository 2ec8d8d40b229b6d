"""One proxy, or its target, asked once: what may be sent, and what came of it.

The rule: nothing is sent that the operator's lists forbid, and what goes to a proxy is put together
from one reading of its credentials.
"""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, Final, NamedTuple

from proxy_operator.domain.allow_list import AllowList
from proxy_operator.domain.health import ProbeError
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Credentials
from proxy_operator.health.check import read_check
from proxy_operator.health.ports import (
    CredentialsReader,
    ProbeOutcome,
    Prober,
    ProbeRequest,
    TargetRequest,
)
from proxy_operator.health.targets import TargetRules, target_of
from proxy_operator.runtime.clock import Clock

# A prober keeps its own deadline; this much later it is taken for stuck and cut off.
SLACK: Final = timedelta(seconds=1)


class Answer(NamedTuple):
    """What came of asking."""

    outcome: ProbeOutcome
    is_sent: bool
    """Whether anything was sent: what was not asked has nothing to measure."""


class Inquirer:
    """Asks proxies and targets, any number at a time."""

    def __init__(
        self,
        prober: Prober,
        credentials: CredentialsReader,
        clock: Clock,
        targets: TargetRules,
        allowed: AllowList,
    ) -> None:
        self._prober = prober
        self._credentials = credentials
        self._clock = clock
        self._targets = targets
        self._allowed = allowed

    async def ask(self, proxy: Proxy) -> Answer:
        """Probe a proxy, or say why nothing is sent to it. LocalProbeError as from the prober.

        One whose credentials cannot be had is of no use to anybody, even if it answers without.
        """
        refusal = self._allowed.refusal(proxy)
        if refusal is not None:
            return _unsent(ProbeError.NOT_ALLOWED, refusal)
        try:
            credentials = self._credentials.credentials_for(proxy)
        except ValueError as err:
            return _unsent(ProbeError.AUTH, str(err))
        request = self._request(proxy, credentials)
        outcome = await self._in_time(self._prober.probe(request), request.timeout)
        return Answer(outcome, is_sent=True)

    async def ask_target(self, proxy: Proxy, within: timedelta) -> Answer:
        """Fetch a proxy's target without it, if the lists let the proxy be probed against it."""
        refusal, url = self._allowed.refusal(proxy), target_of(proxy, self._targets)
        if refusal is not None or url is None:
            return _unsent(ProbeError.NOT_ALLOWED, refusal or "there is no target")
        request = TargetRequest(
            url=url, expected_status=proxy.spec.health_check.expected_status, timeout=within
        )
        outcome = await self._in_time(self._prober.probe_directly(request), within)
        return Answer(outcome, is_sent=True)

    def _request(self, proxy: Proxy, credentials: Credentials | None) -> ProbeRequest:
        address, url = proxy.address, target_of(proxy, self._targets)
        if address is None or url is None:
            raise LookupError("a proxy under watch lost its address or target unnoticed")
        check = read_check(proxy.spec.health_check)
        return ProbeRequest(
            host=address[0],
            port=address[1],
            scheme=proxy.spec.scheme,
            credentials=credentials,
            url=url,
            expected_status=check.expected_status,
            timeout=check.timeout,
            networks=self._allowed.networks_of(proxy),
        )

    async def _in_time(
        self, probe: Coroutine[Any, Any, ProbeOutcome], within: timedelta
    ) -> ProbeOutcome:
        started = self._clock.monotonic()
        try:
            async with asyncio.timeout((within + SLACK).total_seconds()):
                return await probe
        except TimeoutError:
            return ProbeOutcome(
                error=ProbeError.TIMEOUT,
                detail="the probe did not end in time",
                latency=timedelta(seconds=self._clock.monotonic() - started),
            )


def _unsent(error: ProbeError, detail: str) -> Answer:
    return Answer(ProbeOutcome(error=error, detail=detail, latency=timedelta()), is_sent=False)

"""One proxy, asked once: what may be sent to it, and what came of it.

Everything that goes out for a proxy is put together here, from one reading of its credentials.
"""

import asyncio
from datetime import timedelta
from typing import Final, NamedTuple

from proxy_operator.domain.allow_list import AllowList
from proxy_operator.domain.health import ProbeError
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Credentials
from proxy_operator.health.check import read_check
from proxy_operator.health.ports import CredentialsReader, ProbeOutcome, Prober, ProbeRequest
from proxy_operator.health.targets import TargetRules, target_of
from proxy_operator.runtime.clock import Clock

# A prober keeps its own deadline; this much later it is taken for stuck and cut off.
SLACK: Final = timedelta(seconds=1)


class Answer(NamedTuple):
    """What came of asking a proxy."""

    outcome: ProbeOutcome
    is_sent: bool
    """Whether anything was sent: a proxy that is not asked has nothing to measure."""


class Inquirer:
    """Asks proxies, any number at a time."""

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
        return Answer(await self._send(self._request(proxy, credentials)), is_sent=True)

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

    async def _send(self, request: ProbeRequest) -> ProbeOutcome:
        started = self._clock.monotonic()
        try:
            async with asyncio.timeout((request.timeout + SLACK).total_seconds()):
                return await self._prober.probe(request)
        except TimeoutError:
            return ProbeOutcome(
                error=ProbeError.TIMEOUT,
                detail="the probe did not end in time",
                latency=timedelta(seconds=self._clock.monotonic() - started),
            )


def _unsent(error: ProbeError, detail: str) -> Answer:
    return Answer(ProbeOutcome(error=error, detail=detail, latency=timedelta()), is_sent=False)

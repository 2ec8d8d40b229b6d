"""Proofs from a credential plugin, kept for as long as they are good.

The rule: however many requests wait, one run at a time, whose result all of them share.
"""

import asyncio
from datetime import timedelta
from typing import Final

from proxy_operator.adapters.kube.access import CredentialsError
from proxy_operator.adapters.kube.exec_plugin import Credential, Plugin, run_plugin
from proxy_operator.adapters.kube.proofs import Proof
from proxy_operator.runtime.clock import Clock

_LEEWAY: Final = timedelta(seconds=10)
"""A request must arrive before the credential it carries has expired."""
_REST_SECONDS: Final = 5.0
"""A plugin is not run again sooner, whatever it answered: neither a server that refuses its
credentials nor a plugin that fails, or whose credentials are born expired, is to be hammered."""


class ExecCredential:
    """Runs the plugin when a proof is first needed, has expired, or was refused."""

    def __init__(self, plugin: Plugin, clock: Clock) -> None:
        self._plugin = plugin
        self._clock = clock
        self._lock = asyncio.Lock()
        self._credential: Credential | None = None
        self._error: CredentialsError | None = None
        self._ran_at: float | None = None

    async def current(self) -> Proof:
        if (proof := self._good()) is not None:
            return proof
        async with self._lock:
            # Another request may have run it while this one waited.
            return self._good() or await self._run()

    async def refresh(self, refused: Proof) -> bool:
        async with self._lock:
            if self._is_resting():
                proof = None if self._credential is None else self._credential.proof
                return proof is not None and proof != refused
            return await self._run() != refused

    def _good(self) -> Proof | None:
        if self._is_resting():
            if self._error is not None:
                raise CredentialsError(str(self._error)) from self._error
        elif self._credential is None or self._is_expiring(self._credential):
            return None
        return None if self._credential is None else self._credential.proof

    def _is_resting(self) -> bool:
        return self._ran_at is not None and self._clock.monotonic() - self._ran_at < _REST_SECONDS

    def _is_expiring(self, credential: Credential) -> bool:
        expires_at = credential.expires_at
        return expires_at is not None and self._clock.now() >= expires_at - _LEEWAY

    async def _run(self) -> Proof:
        self._credential = self._error = None
        try:
            self._credential = await run_plugin(self._plugin)
        except CredentialsError as err:
            self._error = err
            self._ran_at = self._clock.monotonic()
            raise
        self._ran_at = self._clock.monotonic()
        return self._credential.proof

"""Keeps proxies whose credentials cannot be told out of the lease store: a sink in front of it.

The rule: a lost or changed Secret counts in the same step of the loop in which that happens, and so
does its return; no client ever gets a proxy without the password that it asks for.
"""

from collections.abc import Iterable

import msgspec

from proxy_operator.domain.lease import Candidate
from proxy_operator.domain.proxy import Proxy
from proxy_operator.leasing.feed import candidate_of
from proxy_operator.leasing.ports import CandidateSink, CredentialsReader
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.store import Lister


class CredentialsGate:
    """Passes candidates on, as unhealthy when their credentials cannot be told."""

    def __init__(
        self, sink: CandidateSink, proxies: Lister[Proxy], credentials: CredentialsReader
    ) -> None:
        self._sink = sink
        self._proxies = proxies
        self._credentials = credentials

    def upsert(self, candidate: Candidate) -> None:
        """Pass a candidate on."""
        if candidate.is_healthy and not self._has_credentials(candidate):
            candidate = msgspec.structs.replace(candidate, is_healthy=False)
        self._sink.upsert(candidate)

    def remove(self, uid: str) -> None:
        """Let a candidate go."""
        self._sink.remove(uid)

    def recheck(self, keys: Iterable[ObjectKey]) -> None:
        """Look again at these proxies: a Secret that they use has changed, come or gone."""
        for key in keys:
            proxy = self._proxies.get(key)
            if proxy is not None:
                self.upsert(candidate_of(proxy))

    def _has_credentials(self, candidate: Candidate) -> bool:
        proxy = self._proxies.get(ObjectKey(candidate.namespace, candidate.name))
        if proxy is None or proxy.metadata.uid != candidate.uid:
            return False
        try:
            self._credentials.credentials_for(proxy)
        except ValueError:
            return False
        return True

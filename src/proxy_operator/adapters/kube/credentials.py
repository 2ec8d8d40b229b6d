"""Proofs and TLS contexts put together into identities."""

from collections.abc import Iterable

from multidict import CIMultiDict, CIMultiDictProxy

from proxy_operator.adapters.kube.access import Identity
from proxy_operator.adapters.kube.proofs import Proof, Proofs
from proxy_operator.adapters.kube.tls import TlsContexts

Header = tuple[str, str]


class ClusterCredentials:
    """The `Credentials` of every source; what differs are its proofs."""

    def __init__(
        self, proofs: Proofs, tls: TlsContexts | None, headers: Iterable[Header] = ()
    ) -> None:
        """`tls` is None for plain HTTP; `headers` go with every request (impersonation)."""
        self._proofs = proofs
        self._tls = tls
        self._headers = tuple(headers)
        self._proof = Proof()
        self._identity: Identity | None = None

    async def current(self) -> Identity:
        proof = await self._proofs.current()
        context = None if self._tls is None else self._tls.current(proof.key_pair)
        held = self._identity
        if held is not None and proof == self._proof and context is held.ssl:
            return held
        headers = CIMultiDict(self._headers)
        if proof.authorization is not None:
            headers["Authorization"] = proof.authorization
        self._proof = proof
        self._identity = Identity(headers=CIMultiDictProxy(headers), ssl=context)
        return self._identity

    async def refresh(self, refused: Identity) -> bool:
        if refused is not self._identity:
            return True  # replaced while the refused request was under way
        has_other_context = self._tls is not None and self._tls.reload()
        return await self._proofs.refresh(self._proof) or has_other_context

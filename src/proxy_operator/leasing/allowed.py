"""Keeps what the operator's own lists refuse from being leased: a reader in front of the Secrets.

The rule: a client that got a refused proxy would take the password there.
"""

from proxy_operator.domain.allow_list import AllowList
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Credentials
from proxy_operator.leasing.ports import CredentialsReader


class AllowedCredentials:
    """Implements `leasing.ports.CredentialsReader`: none for a refused proxy."""

    def __init__(self, credentials: CredentialsReader, allowed: AllowList) -> None:
        self._credentials = credentials
        self._allowed = allowed

    def credentials_for(self, proxy: Proxy) -> Credentials | None:
        """Return credentials, or None when the proxy needs none. ValueError says why not."""
        refusal = self._allowed.refusal(proxy)
        if refusal is not None:
            raise ValueError(refusal)
        return self._credentials.credentials_for(proxy)

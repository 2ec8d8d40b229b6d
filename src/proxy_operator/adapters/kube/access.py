"""What a client must know to talk to one kube-apiserver, whatever it was learned from.

The rule: ask for the identity before each request, for tokens and certificates change while we
run; and nothing of an identity is ever printed.
"""

from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Protocol

from multidict import CIMultiDictProxy

from proxy_operator.runtime.errors import ObjectError, UnavailableError


class ClusterConfigError(ObjectError):
    """No cluster can be reached as configured: show the sentence and exit."""


class CredentialsError(UnavailableError):
    """We cannot prove who we are just now: retry with backoff, and show the sentence."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Identity:
    """Who we are in one request. The same object for as long as nothing changes."""

    headers: CIMultiDictProxy[str] = field(repr=False)
    """To be sent with the request; a name may stand several times."""
    ssl: SSLContext | None
    """The context to connect with: another object after a change of certificates, so that a pool
    keyed by it opens new connections. None for plain HTTP."""


class Credentials(Protocol):
    """How we prove who we are. Calls may overlap."""

    async def current(self) -> Identity:
        """Return the identity for the next request; cheap unless a new one must be fetched.

        CredentialsError when none can be had now: retry with backoff.
        """

    async def refresh(self, refused: Identity) -> bool:
        """Take note of a 401 and tell whether `current` has another identity to try, once.

        False: the server knows who we are and says no, or nothing newer is to be had.
        CredentialsError as for `current`.
        """


@dataclass(frozen=True, kw_only=True)
class ClusterAccess:
    """One kube-apiserver and our credentials for it."""

    server: str
    """`https://host[:port][/prefix]`, without a slash at the end."""
    tls_server_name: str | None
    """The name to ask for (SNI) and to find in the certificate instead of the server's host."""
    credentials: Credentials = field(repr=False)
    namespace: str | None
    """The namespace of the context or of the service account."""
    proxy_url: str | None = field(repr=False)
    """An HTTP proxy on the way to the server; may hold a password."""
    source: str
    """For messages: `context "lab" of /home/me/.kube/config`, `the service account of this Pod`."""

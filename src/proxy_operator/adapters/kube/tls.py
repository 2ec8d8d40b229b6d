"""TLS towards the API server: whom we believe, and the certificate we show.

The rule: a context is never changed once it is in use; another certificate is another context.
"""

import logging
import ssl
from dataclasses import dataclass, field
from typing import Final

from proxy_operator.adapters.kube.access import ClusterConfigError
from proxy_operator.adapters.kube.material import Material
from proxy_operator.adapters.kube.private_file import private_file
from proxy_operator.runtime.clock import Clock

logger = logging.getLogger(__name__)

_CHECK_SECONDS: Final = 60.0
"""How long a replaced certificate file may go unnoticed."""


@dataclass(frozen=True)
class KeyPair:
    """A client certificate (with its chain) and its key, both PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True)
class Trust:
    """Whom we believe to be the API server."""

    authority: Material | None
    """PEM certificates, which then are the only authorities; None: those of the system."""
    insecure: bool = False
    """Believe everybody."""


class TlsContexts:
    """The context for the next connection, made anew when the files behind it change."""

    def __init__(
        self, trust: Trust, certificate: Material | None, key: Material | None, clock: Clock
    ) -> None:
        self._trust = trust
        self._certificate = certificate
        self._key = key
        self._clock = clock
        self._given: KeyPair | None = None
        self._context: ssl.SSLContext | None = None
        self._stamps: tuple[object, ...] = ()
        self._checked_at = 0.0

    def current(self, given: KeyPair | None = None) -> ssl.SSLContext:
        """Return the context; `given` is shown where no certificate is configured.

        ClusterConfigError when the first one, or one for another `given`, cannot be made.
        """
        if self._context is None or given != self._given:
            return self._replace(given)
        if self._clock.monotonic() - self._checked_at >= _CHECK_SECONDS:
            self.reload()
        return self._context

    def reload(self) -> bool:
        """Look at the files now; True when the context is another one than before.

        Files that cannot be used (half of a pair replaced so far) are left for the next time.
        """
        if self._context is None:
            return False
        self._checked_at = self._clock.monotonic()
        if self._stamps_now() == self._stamps:
            return False
        try:
            self._replace(self._given)
        except ClusterConfigError as err:
            logger.warning("changed certificates are not used yet", extra={"reason": str(err)})
            return False
        return True

    def _replace(self, given: KeyPair | None) -> ssl.SSLContext:
        # Before the files are read: one replaced in between is read again.
        stamps = self._stamps_now()
        context = _trusting(self._trust)
        if self._certificate is not None and self._key is not None:
            pair = KeyPair(self._certificate.read(), self._key.read())
            try:
                show(context, pair)
            except ValueError as err:
                raise ClusterConfigError(f"{self._certificate.where}: {err}") from err
        elif given is not None:
            show(context, given)
        self._checked_at = self._clock.monotonic()
        self._given, self._context, self._stamps = given, context, stamps
        return context

    def _stamps_now(self) -> tuple[object, ...]:
        parts = (self._trust.authority, self._certificate, self._key)
        return tuple(part.stamp() for part in parts if part is not None)


def show(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Make the context show the certificate. ValueError when the pair is unusable."""
    # load_cert_chain reads files only, and asks at the terminal where no password is given.
    with private_file(pair.certificate) as certificate, private_file(pair.key) as key:
        try:
            context.load_cert_chain(certificate.name, key.name, password=_no_password)
        except ssl.SSLError as err:
            if err.reason == "KEY_VALUES_MISMATCH":
                raise ValueError("the client key does not belong to the certificate") from err
            raise ValueError("no client certificate and key in PEM can be read") from err


def check_pair(pair: KeyPair) -> None:
    """Make sure that the pair can be shown. ValueError says what is wrong with it."""
    show(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), pair)


def _trusting(trust: Trust) -> ssl.SSLContext:
    text = None
    if trust.authority is not None:
        text = trust.authority.read().decode("ascii", "ignore")
        # An empty text would mean the system's authorities.
        if "-----BEGIN " not in text:
            raise ClusterConfigError(f"{trust.authority.where}: no certificate in PEM is there")
    try:
        context = ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError) as err:
        where = "" if trust.authority is None else f"{trust.authority.where}: "
        raise ClusterConfigError(f"{where}no certificate in PEM can be read") from err
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # As Go verifies: any certificate given is an anchor, and the authorities of many clusters
    # lack extensions that the strict mode (default since Python 3.13) asks for.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if trust.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _no_password() -> str:
    raise ValueError("the client key is encrypted, and nobody is here to give its password")

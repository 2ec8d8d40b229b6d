"""Why a probe failed: classes for machines, clauses for people, in one place.

A clause carries no time, port number or credential: the same fault twice must read the same.
"""

import errno
import ssl
from typing import Final

from proxy_operator.domain.health import ProbeError

# Faults of this machine; they say nothing about any proxy.
_LOCAL: Final = {
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOBUFS,
    errno.ENOMEM,
    errno.EADDRNOTAVAIL,
}


class FailedProbeError(Exception):
    """The probe failed: class, and one clause."""

    def __init__(
        self, error: ProbeError, detail: str, *, connect_status: int | None = None
    ) -> None:
        super().__init__(detail)
        self.error = error
        self.detail = detail
        self.connect_status = connect_status


def is_local(err: OSError) -> bool:
    """Tell whether this machine, not its peer, is to blame."""
    return err.errno in _LOCAL


def connect_fault(err: OSError, peer: str) -> FailedProbeError:
    """Name what kept a connection from being made; `peer` is `proxy` or `target`."""
    if err.errno == errno.ETIMEDOUT:
        return FailedProbeError(ProbeError.TIMEOUT, f"connecting to the {peer} took too long")
    if err.errno == errno.ECONNREFUSED:
        return FailedProbeError(ProbeError.REFUSED, f"the {peer} refused the connection")
    if err.errno == errno.ECONNRESET:
        return FailedProbeError(ProbeError.REFUSED, f"the {peer} reset the connection")
    reason = (err.strerror or "unknown reason").lower()
    return FailedProbeError(ProbeError.REFUSED, f"the {peer} cannot be reached: {reason}")


def tls_fault(err: ssl.SSLError, peer: str) -> FailedProbeError:
    """Name what is wrong with a peer's TLS; `peer` is `proxy` or `target`."""
    if isinstance(err, ssl.SSLCertVerificationError):
        reason = f"its certificate is not trusted: {err.verify_message.rstrip('.')}"
    elif isinstance(err, ssl.SSLEOFError):
        reason = "it hung up during the handshake"
    elif err.reason:
        reason = err.reason.replace("_", " ").lower()
    else:
        reason = "handshake failed"
    return FailedProbeError(ProbeError.TLS, f"no TLS with the {peer}: {reason}")

"""Why there is no connection, in words for people.

The rule: places and reasons only; the libraries' own texts show how they are made, not what is
wrong.
"""

import os
import ssl

import aiohttp

_BROKEN = "the connection broke"


def reason_of(err: aiohttp.ClientError | OSError) -> str:
    """Return what a failed or broken connection says: `api.lab:6443: connection refused`."""
    if isinstance(err, aiohttp.ClientConnectorCertificateError):
        return f"{err.host}:{err.port}: {_of_certificate(err.certificate_error)}"
    if isinstance(err, aiohttp.ClientConnectorError):
        return f"{err.host}:{err.port}: {_of_os_error(err.os_error)}"
    if isinstance(err, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError):
        return _BROKEN
    if isinstance(err, OSError):
        return _of_os_error(err)
    return str(err) or type(err).__name__


def _of_certificate(err: Exception) -> str:
    said = getattr(err, "verify_message", "") or str(err)
    return f"its certificate is not accepted: {said}"


def _of_os_error(err: OSError) -> str:
    if isinstance(err, ssl.SSLError):
        said = (err.reason or "TLS failed").replace("_", " ").lower()
        return f"no TLS: {said}"
    # Names are not looked up by the system call interface: their numbers are others.
    if err.errno is not None and err.errno > 0:
        return os.strerror(err.errno).lower()
    return (err.strerror or str(err) or _BROKEN).lower()

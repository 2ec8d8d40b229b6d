"""What the addresses and ports of this machine allow now, found out by trying.

A visitor must keep this rule: nothing here sends a packet or keeps a socket.
"""

import contextlib
import ipaddress
import os
import socket
from collections.abc import Iterator

from proxy_operator.adapters.providers.local.listening import bound_socket, sentence_for
from proxy_operator.provisioning.errors import EnvironmentProviderError


def check_egress(address: str | None) -> None:
    """Try the source address, so that a wrong one is said once and not by every request."""
    if address is None:
        return
    with _a_socket(address, socket.SOCK_STREAM) as trial:
        try:
            trial.bind((address, 0))
        except OSError as err:
            reason = os.strerror(err.errno or 0)
            raise EnvironmentProviderError(
                f"spec.local.egressAddress: cannot send from {address}: {reason};"
                " it must be an address of this machine"
            ) from err


def check_listening(bind: str, port: int) -> None:
    """Try whether a proxy could listen there; EnvironmentProviderError says why not."""
    try:
        bound_socket(bind, port).close()
    except OSError as err:
        raise EnvironmentProviderError(sentence_for(err, bind, port)) from err


def reachable(host: str) -> str:
    """Return the address clients connect to: for a wildcard, the one this machine goes out by."""
    if not ipaddress.ip_address(host).is_unspecified:
        return host
    is_v6 = ":" in host
    with _a_socket(host, socket.SOCK_DGRAM) as trial:
        try:
            # Connecting a datagram socket sends nothing: it only asks the routing table.
            trial.connect(("2001:db8::1" if is_v6 else "192.0.2.1", 9))
        except OSError:
            return "::1" if is_v6 else "127.0.0.1"
        return str(trial.getsockname()[0])


@contextlib.contextmanager
def _a_socket(address: str, kind: socket.SocketKind) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, kind) as one:
        yield one

"""A forward proxy in a process of its own: `python -m tests.fakes.compute.proxy_process HOST PORT`.

It connects clients to whatever they ask for, and dies with the process that started it.
"""

import ctypes
import ipaddress
import signal
import socket
import sys
from pathlib import Path

from proxy_operator.adapters.providers.local.dialer import CONNECT_SECONDS, Dialer
from proxy_operator.adapters.providers.local.engine import Engine
from proxy_operator.adapters.providers.local.listening import bound_socket

_PR_SET_PDEATHSIG = 1


class OpenDialer(Dialer):
    """Refuses no target: the origins of a trial listen on loopback as well.

    These see the instance's own address, as the world sees that of a real one.
    """

    def __init__(self, own: str) -> None:
        super().__init__(Path(), bind=own, egress_address=None)
        self._own = own

    def connect(self, host: str, port: int) -> socket.socket:
        numeric = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
        source = (self._own, 0) if ipaddress.ip_address(numeric).is_loopback else None
        address = (str(numeric), port)
        return socket.create_connection(address, CONNECT_SECONDS, source_address=source)


def main(host: str, port: int) -> None:
    """Serve until killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    listener = bound_socket(host, port)
    listener.listen(128)
    Engine(listener, credentials=None, dialer=OpenDialer(host)).serve()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

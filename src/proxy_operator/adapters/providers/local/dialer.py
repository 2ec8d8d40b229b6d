"""Connecting a client to its target: resolve once, ask about each address, connect to that one.

A name is never resolved again after the question: an answer that changes in between leads nowhere.
"""

import ipaddress
import socket
from pathlib import Path
from typing import Final

from proxy_operator.adapters.providers.local.reach import (
    Destination,
    is_reachable,
    plain_address,
    read_reach,
)
from proxy_operator.provisioning.targets import Address

CONNECT_SECONDS: Final = 10.0


class TargetRefusedError(Exception):
    """The target is one that clients of this proxy are not connected to."""


class Dialer:
    """Connects to targets, from the egress address when there is one."""

    def __init__(self, root: Path, *, bind: str, egress_address: str | None) -> None:
        """`root` is where the operator's part of the rule is found (`reach.path_for`)."""
        self._root = root
        self._is_local_proxy = ipaddress.ip_address(bind).is_loopback
        self._source = (egress_address, 0) if egress_address else None

    def connect(self, host: str, port: int) -> socket.socket:
        """Return a connection, made within `CONNECT_SECONDS` for each address of the target.

        TargetRefusedError when all its addresses are refused, OSError when none answers.
        """
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        reach = read_reach(self._root)
        allowed = [
            numeric
            for numeric in dict.fromkeys(str(entry[4][0]) for entry in found)
            if is_reachable(
                _destination(host, numeric, port), reach, is_local_proxy=self._is_local_proxy
            )
        ]
        if not allowed:
            raise TargetRefusedError(host)
        for numeric in allowed[:-1]:
            try:
                return self._connect_to(numeric, port)
            except OSError:
                continue
        return self._connect_to(allowed[-1], port)

    def _connect_to(self, numeric: str, port: int) -> socket.socket:
        return socket.create_connection(
            (numeric, port), timeout=CONNECT_SECONDS, source_address=self._source
        )


def _destination(host: str, numeric: str, port: int) -> Destination:
    address = plain_address(numeric)
    is_here = address.is_loopback or address.is_unspecified or is_own(address)
    return Destination(host, address, port, is_here)


def is_own(address: Address) -> bool:
    """Tell whether packets to this address stay on this machine.

    To its own addresses a machine speaks from that very address. Connecting a datagram socket
    sends nothing: it only asks the routing table.
    """
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as trial:
        try:
            trial.connect((str(address), 9))
        except OSError:
            return False  # no way leads there
        return plain_address(str(trial.getsockname()[0])) == address

"""Addresses taken early: a port that another program uses is found before anything is begun."""

import asyncio
import errno
import os
import socket
from typing import Final

from proxy_operator.adapters.web.bind import Bind, BindError

BACKLOG: Final = 512


class Listener:
    """One address. Clients that come between `open` and the first accept wait."""

    def __init__(self, name: str, bind: Bind) -> None:
        """`name` says what for, in messages."""
        self.name = name
        self._bind = bind
        self._socket: socket.socket | None = None

    @property
    def bound(self) -> Bind:
        """The address with the port in use, once open; RuntimeError before."""
        if self._socket is None:
            raise RuntimeError(f"{self.name} is not started")
        return Bind(self._bind.host, self._socket.getsockname()[1])

    async def open(self) -> socket.socket:
        """Take the address, unless that was done. BindError says why it cannot be had."""
        if self._socket is None:
            try:
                self._socket = await _listen(self._bind)
            except OSError as err:
                reason = f"cannot listen on {self._bind} for {self.name}: {_reason(err)}"
                raise BindError(reason) from err
        return self._socket

    def close(self) -> None:
        """Give the address back. Harmless when it is not open."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


async def _listen(bind: Bind) -> socket.socket:
    if not bind.host or bind.host == "::":
        return _listen_everywhere(bind)
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(bind.host, bind.port, type=socket.SOCK_STREAM)
    family, _, _, _, address = found[0]
    return socket.create_server(address[:2], family=family, backlog=BACKLOG)


def _listen_everywhere(bind: Bind) -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("::", bind.port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG
        )
    if bind.host:
        raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
    return socket.create_server(("0.0.0.0", bind.port), backlog=BACKLOG)  # noqa: S104 - asked for


def _reason(err: OSError) -> str:
    if isinstance(err, socket.gaierror):
        return f"the host name is unknown ({err.strerror})"
    if err.errno == errno.EADDRINUSE:
        return "another program uses the port"
    return (err.strerror or str(err)).lower()

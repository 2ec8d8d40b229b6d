"""Connections to the API server that notice when nothing answers any more.

The rule: the operating system asks, not we. A watch is silent for a minute and is well; behind a
firewall that has forgotten the connection it is silent for ever, and only a question tells which.
"""

import socket
from typing import Any, Final

IDLE: Final = 15
"""Seconds without a byte after which the other end is asked whether it is there."""
EVERY: Final = 5
"""Seconds between questions without an answer."""
QUESTIONS: Final = 3
"""How many go unanswered before the connection is dead: half a minute after the last byte."""

# tcp(7); not every system can set all of them.
_WANTED: Final = {
    "TCP_KEEPIDLE": IDLE,
    "TCP_KEEPINTVL": EVERY,
    "TCP_KEEPCNT": QUESTIONS,
    # The same for what was sent and never acknowledged, in milliseconds.
    "TCP_USER_TIMEOUT": 1000 * (IDLE + EVERY * QUESTIONS),
}


def new_socket(address: tuple[Any, ...]) -> socket.socket:
    """Return a socket for an address as `socket.getaddrinfo` describes it."""
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _WANTED.items():
        option = getattr(socket, name, None)
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made

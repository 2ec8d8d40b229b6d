"""Listening, as the launcher does it, and what is said when that fails.

Shared by operator and launcher; imports nothing heavy, because every proxy process carries it.
"""

import os
import socket


def bound_socket(bind: str, port: int) -> socket.socket:
    """Return a socket bound to that address and port (0 is any). OSError when it cannot be.

    Unless somebody listens on it, a port can be bound by two such sockets at a time: a trial
    takes nothing from whoever really starts at that moment.
    """
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind((bind, port))
    except BaseException:
        one.close()
        raise
    return one


def sentence_for(err: OSError, bind: str, port: int) -> str:
    """Say where listening failed, and why."""
    host = f"[{bind}]" if ":" in bind else bind
    return f"cannot listen on {host} port {port or '(any)'}: {os.strerror(err.errno or 0)}"

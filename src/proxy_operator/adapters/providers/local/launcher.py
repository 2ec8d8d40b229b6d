"""Becomes the proxy process of one instance: `python -I -m …launcher DIRECTORY`.

Born holding the instance's lock on descriptor 3, its settings on stdin, and the ear of whoever
started it on stdout. It must not rely on that one to live: every write to stdout may fail.
"""

import contextlib
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proxy_operator.adapters.providers.local import layout
from proxy_operator.adapters.providers.local.listening import bound_socket, sentence_for


def main(directory: Path) -> None:
    """Detach, listen, tell where, and serve until SIGTERM."""
    if os.fork():
        os._exit(0)  # the starter reaps this one at once, and init the other: never a zombie
    os.setsid()
    os.umask(0o077)
    os.chdir("/")
    _close_inherited()
    pid = os.getpid()
    layout.write_atomically(directory / layout.PROCESS, {"pid": pid, "start": layout.start_of(pid)})
    settings = json.loads(sys.stdin.buffer.read() or b"null")
    if settings is None:
        return  # the operator died before it had told what to do
    _redirect(directory)
    _limit()
    bind, port = settings["bind"], settings["port"]
    try:
        bound = bound_socket(bind, port)
    except OSError as err:
        _report({"error": sentence_for(err, bind, port)})
        return
    address = {"host": bind, "port": bound.getsockname()[1]}

    def announce() -> None:
        layout.write_atomically(directory / layout.LISTENING, address)
        _report(address)

    serve = _serve_squid if settings["engine"] == "squid" else _serve_proxy_py
    serve(directory, settings, bound, announce)


def _serve_proxy_py(
    directory: Path, settings: dict[str, Any], bound: socket.socket, announce: Callable[[], None]
) -> None:
    try:
        bound.listen(1024)
    except OSError as err:
        _report({"error": sentence_for(err, settings["bind"], settings["port"])})
        return
    try:
        from proxy_operator.adapters.providers.local.dialer import Dialer  # noqa: PLC0415 - heavy
        from proxy_operator.adapters.providers.local.engine import Engine  # noqa: PLC0415 - heavy
    except ImportError as err:
        _report({"error": f"engine proxy-py cannot be loaded ({err}): install proxy.py"})
        return
    credentials, egress = settings["credentials"], settings["egressAddress"]
    engine = Engine(
        bound,
        credentials=tuple(credentials) if credentials else None,
        dialer=Dialer(directory.parent, bind=settings["bind"], egress_address=egress),
    )
    announce()
    engine.serve()


def _serve_squid(
    directory: Path, settings: dict[str, Any], bound: socket.socket, announce: Callable[[], None]
) -> None:
    from proxy_operator.adapters.providers.local import squid_engine  # noqa: PLC0415 - heavy

    # Bound here and never listened on, the port stays squid's: both sockets may be bound to it,
    # and the system gives it to nobody else, while squid starts or opens it anew.
    try:
        squid_engine.serve(directory, settings, bound.getsockname()[1], announce)
    except (squid_engine.SquidError, OSError) as err:
        sys.stderr.write(f"squid: {err}\n")
        _report({"error": f"squid does not run: {err}"})


def _close_inherited() -> None:
    """Keep nothing that the operator itself was given open by whoever started it."""
    os.set_inheritable(layout.LOCK_FD, False)  # noqa: FBT003 - the standard library's signature
    for entry in os.listdir("/proc/self/fd"):
        if int(entry) > layout.LOCK_FD:
            with contextlib.suppress(OSError):  # the one that listed the directory
                os.close(int(entry))


def _redirect(directory: Path) -> None:
    """Let stdin be empty and stderr a file; stdout stays the starter's until `_report`."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    log = os.open(directory / layout.LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    os.close(log)


def _limit() -> None:
    """Bound what a process that lives for months may take of the machine."""
    # Python ignores SIGXFSZ: writes beyond the limit fail, and only the log is ever written.
    resource.setrlimit(resource.RLIMIT_FSIZE, (layout.LOG_BYTES, layout.LOG_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))


def _report(message: dict[str, Any]) -> None:
    """Answer the starter, if it still listens, and let go of its pipe."""
    with contextlib.suppress(OSError):  # it died; whoever comes next reads the files
        os.write(1, json.dumps(message).encode() + b"\n")
    os.dup2(0, 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Becomes the proxy process of one instance: `python -I -m …launcher DIRECTORY`.

Born holding the instance's lock on descriptor 3, its settings on stdin, and the ear of whoever
started it on stdout. It must not rely on that one to live: every write to stdout may fail.
"""

import contextlib
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from proxy_operator.adapters.providers.local import layout
from proxy_operator.adapters.providers.local.dialer import Dialer
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
        listener = bound_socket(bind, port)
        listener.listen(1024)
    except OSError as err:
        _report({"error": sentence_for(err, bind, port)})
        return
    try:
        from proxy_operator.adapters.providers.local.engine import Engine  # noqa: PLC0415 - heavy
    except ImportError as err:
        _report({"error": f"engine proxy-py cannot be loaded ({err}): install proxy.py"})
        return
    credentials = settings["credentials"]
    engine = Engine(
        listener,
        credentials=tuple(credentials) if credentials else None,
        dialer=Dialer(directory.parent, bind=bind, egress_address=settings["egressAddress"]),
    )
    address = {"host": bind, "port": listener.getsockname()[1]}
    layout.write_atomically(directory / layout.LISTENING, address)
    _report(address)
    engine.serve()


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

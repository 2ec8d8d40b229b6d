"""The squid inside a local instance, and the process that watches over it.

Only the launcher's process imports this. What it must keep: neither of the two outlives the
other, and both hold the instance's lock, so that none is ever missed.
"""

import contextlib
import ctypes
import os
import pwd
import resource
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

from proxy_operator.adapters.providers.local import layout, squid_files
from proxy_operator.adapters.providers.local.interfaces import own_addresses
from proxy_operator.adapters.providers.local.reach import path_for, read_reach

START_SECONDS: Final = 60.0
FOLLOW_SECONDS: Final = 1.0
"""How soon a change of what may be connected to is noticed."""
ADDRESSES_SECONDS: Final = 60.0
HELPERS_SECONDS: Final = 1.0
"""How long helpers may take to notice that squid has gone."""
_UNPRIVILEGED: Final = ("proxy", "squid", "nobody")
_WAITED_FOR: Final = frozenset({signal.SIGCHLD, signal.SIGTERM})
_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG
_REAPER: Final = 36  # PR_SET_CHILD_SUBREAPER


class SquidError(Exception):
    """Squid ended. The message says why, in its words."""


class SquidEngine:
    """One squid, from its files to its end; SIGTERM ends both processes, at once."""

    def __init__(self, directory: Path, settings: dict[str, Any], port: int) -> None:
        self._home = directory / layout.SQUID
        self._log = directory / layout.LOG
        self._root = directory.parent
        self._settings = settings
        self._port = port
        self._name = directory.name
        self._owner = _unprivileged() if os.geteuid() == 0 else None
        self._pid = 0
        self._conf = ""
        self._own: tuple[str, ...] = ()
        self._own_until = 0.0
        self._reach_seen: tuple[int, int] | None = None

    def start(self) -> None:
        """Start squid and return when it listens. SquidError, OSError: it does not run."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
        self._home.mkdir(mode=0o711 if self._owner else 0o700, exist_ok=True)
        self._home.chmod(0o711 if self._owner else 0o700)
        if self._settings["users"]:
            self._write(squid_files.USERS, self._settings["users"])
        self._refresh()
        self._unlink_segments()
        self._pid = self._spawn()
        deadline = time.monotonic() + START_SECONDS
        while not self._is_listening():
            self._wait(0.01)
            if time.monotonic() > deadline:
                self._end()
                raise SquidError("it does not listen")
        # Squid has them open and asks for their names no more: now no kill can leave them behind.
        self._unlink_segments()

    def serve(self) -> NoReturn:
        """Follow what the operator allows until told to end. SquidError when squid ends."""
        while True:
            self._wait(FOLLOW_SECONDS)
            with contextlib.suppress(OSError):  # a full disk: the next round tries again
                if self._refresh():
                    os.kill(self._pid, signal.SIGHUP)

    def _wait(self, seconds: float) -> None:
        """Let time pass until something happens to squid or to us."""
        told = signal.sigtimedwait(_WAITED_FOR, seconds)
        if told is not None and told.si_signo == signal.SIGTERM:
            # It keeps nothing that would have to be put in order.
            self._end()
            os._exit(0)
        if os.waitpid(self._pid, os.WNOHANG)[0]:
            self._reap_helpers()
            self._unlink_segments()
            raise SquidError(squid_files.complaint_of(self._log.read_text(errors="replace")))

    def _end(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._reap_helpers()
        self._unlink_segments()

    def _reap_helpers(self) -> None:
        """Collect the helpers: they end when their pipe does, and come to us as orphans."""
        deadline = time.monotonic() + HELPERS_SECONDS
        with contextlib.suppress(ChildProcessError):
            while time.monotonic() < deadline:
                if not os.waitpid(-1, os.WNOHANG)[0]:
                    signal.sigtimedwait({signal.SIGCHLD}, 0.02)

    def _refresh(self) -> bool:
        """Write the configuration for the surroundings of now; tell whether it has changed."""
        now, seen = time.monotonic(), _version_of(path_for(self._root))
        if seen == self._reach_seen and now < self._own_until:
            return False
        own = own_addresses() if now >= self._own_until else self._own
        conf = squid_files.conf_for(
            self._settings,
            self._port,
            squid_files.Surroundings(read_reach(self._root), own),
            descriptors=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        )
        is_new = conf != self._conf
        if is_new:
            self._write(squid_files.CONF, conf)
        # Remembered only now: whatever failed above is done anew.
        if now >= self._own_until:
            self._own_until = now + ADDRESSES_SECONDS
        self._reach_seen, self._own, self._conf = seen, own, conf
        return is_new

    def _write(self, name: str, text: str) -> None:
        owner = -1 if self._owner is None else self._owner.pw_uid
        layout.write_bytes(self._home / name, text.encode(), owner)

    def _spawn(self) -> int:
        library = ctypes.CDLL(None)
        library.prctl(_REAPER, 1, 0, 0, 0)
        parent = os.getpid()
        squid = self._settings["programs"]["squid"]
        arguments = squid_files.arguments_for(squid, self._name)
        pid = os.fork()
        if pid:
            return pid
        try:
            os.chdir(self._home)
            os.dup2(0, 1)
            os.set_inheritable(layout.LOCK_FD, True)  # noqa: FBT003 - the standard library's signature
            if self._owner is not None:
                os.setgroups([])
                os.setgid(self._owner.pw_gid)
                os.setuid(self._owner.pw_uid)
            # After the change of user, which would forget it.
            library.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
            _default_signals()
            if os.getppid() == parent:
                os.execv(squid, arguments)  # noqa: S606 - there is to be no shell
        except BaseException as err:  # noqa: BLE001 - nothing may return from here
            os.write(2, f"FATAL: {err}\n".encode())
        os._exit(1)

    def _is_listening(self) -> bool:
        """Tell whether somebody listens on the port that is bound for squid."""
        bind = self._settings["bind"]
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bind, bind)  # noqa: S104 - compared
        with contextlib.suppress(OSError), socket.create_connection((host, self._port), 1):
            return True
        return False

    def _unlink_segments(self) -> None:
        for path in Path("/dev/shm").glob(f"{squid_files.service_name(self._name)}-*.shm"):  # noqa: S108 - squid's choice
            path.unlink(missing_ok=True)


def serve(
    directory: Path, settings: dict[str, Any], port: int, announce: Callable[[], None]
) -> None:
    """Run squid on a port that the caller keeps bound, and announce it once it listens."""
    engine = SquidEngine(directory, settings, port)
    engine.start()
    announce()
    engine.serve()


def _unprivileged() -> pwd.struct_passwd:
    """Return whom squid runs as where we are root, as which it refuses to run."""
    for name in _UNPRIVILEGED:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise SquidError("it must not run as root, and there is no user proxy, squid or nobody")


def _default_signals() -> None:
    """Undo what the launcher ignores or blocks, SIGXFSZ excepted: the log stops, squid goes on."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _version_of(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns

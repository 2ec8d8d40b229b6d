"""Instance directories below one root: making, observing, ending. Blocking: call from a thread.

A directory gets its name when it is complete and locked, and loses it when its process has gone;
what a crash leaves of either step has another name and is swept.
"""

import contextlib
import errno
import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from proxy_operator.adapters.providers.local import layout, manifests, processes
from proxy_operator.adapters.providers.local.addresses import (
    check_egress,
    check_listening,
    reachable,
)
from proxy_operator.adapters.providers.local.programs import find_squid
from proxy_operator.adapters.providers.squid.sha512_crypt import new_salt
from proxy_operator.domain.instance import Instance, InstanceState
from proxy_operator.domain.names import CLUSTER_LABEL, UID_LABEL
from proxy_operator.provisioning.contract import CreateRequest, InstanceList
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    PermanentProviderError,
    TransientProviderError,
)
from proxy_operator.runtime.clock import Clock, boottime

TERM_SECONDS: Final = 3.0
"""A process that was told to end and still lives after that is killed."""
_LITTER_AGE: Final = timedelta(minutes=10)
_NEW: Final = ".new-"
_OLD: Final = ".old-"


class Instances:
    """Every call looks at the disk and the locks; nothing is remembered between calls."""

    def __init__(self, root: Path, *, bind: str, cluster_id: str, clock: Clock) -> None:
        self._root = root
        self._bind = bind
        self._cluster_id = cluster_id
        self._clock = clock
        # A call whose caller gave up goes on in its thread: these keep the next one apart from it.
        self._turns = tuple(threading.Lock() for _ in range(64))

    def check(self, request: CreateRequest) -> None:
        """Raise what `create` would raise if our instance of that name were gone by then."""
        manifests.check(request, self._bind)
        directory = self._root / request.name
        self._require_no_foreign(request, self._record(directory))
        check_egress(manifests.egress_of(request))
        if manifests.is_squid(request):
            find_squid()
        port = request.spec.port or 0
        listening = layout.read_json(directory / layout.LISTENING) or {}
        is_own = listening.get("port") == port and processes.is_locked(directory)
        check_listening(self._bind, 0 if is_own else port)

    def create(self, request: CreateRequest, given_up: threading.Event) -> None:
        """Start the process, unless our instance exists, and watch it until it listens.

        Once `given_up` is set nothing is made any more: nobody waits for the answer.
        """
        manifests.check(request, self._bind)
        directory = self._root / request.name
        with self._turn(request.name):
            if self._is_taken(request):
                return
            check_egress(manifests.egress_of(request))
            settings = self._settings(request)
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = self._claim(request, given_up)
            if lock is None:
                self._is_taken(request)
                return
            try:
                words = processes.start(directory, lock, settings)
            except OSError:
                self._remove(directory)
                raise
            finally:
                os.close(lock)
        if words is None or "port" in words:
            return
        if "error" not in words:
            raise TransientProviderError(
                f"the proxy process ended while starting; see {directory / layout.LOG}"
            )
        self.end(request.name)
        raise EnvironmentProviderError(words["error"])

    def _settings(self, request: CreateRequest) -> bytes:
        if not manifests.is_squid(request):
            return manifests.settings_for(request, self._bind)
        return manifests.squid_settings_for(request, self._bind, find_squid(), new_salt())

    def observe(self, name: str) -> Instance | None:
        """Return what there is now, or None; a deletion that was asked for moves on."""
        return self._look(name, moves_on=True)

    def _look(self, name: str, *, moves_on: bool) -> Instance | None:
        directory = self._root / name
        record = self._record(directory)
        if record is None:
            return None
        address: dict[str, Any] = {}
        if (directory / layout.DELETION).exists():
            if moves_on and self._is_ours(record) and not self.end(name):
                return None
            state = InstanceState.TERMINATING
        elif processes.is_locked(directory):
            address = layout.read_json(directory / layout.LISTENING) or {}
            state = InstanceState.RUNNING if address else InstanceState.PROVISIONING
        else:
            if moves_on:
                processes.reap_ended(directory)
            state = InstanceState.STOPPED
            if not (directory / layout.RECORD).exists():
                return None  # somebody removed it just now
        return Instance(
            provider_id=manifests.provider_id_of(name),
            state=state,
            ip=reachable(address["host"]) if address else None,
            port=address.get("port"),
            labels=record.labels,
            created_at=record.created_at,
        )

    def end(self, name: str) -> bool:
        """Take one step towards the end of an instance; tell whether there is still something."""
        directory = self._root / name
        with self._turn(name):
            record = self._record(directory)
            if record is not None and not self._is_ours(record):
                raise PermanentProviderError(f"instance {name} belongs to another cluster")
            try:
                lock = processes.try_lock(directory)
            except FileNotFoundError:
                return False
            if lock is None:
                self._tell_to_end(directory)
                return True
            try:
                processes.reap_ended(directory)
                self._remove(directory)
            finally:
                os.close(lock)
        return False

    def list_ours(self) -> InstanceList:
        """Return the instances of our cluster, and sweep what crashes left."""
        self._sweep()
        return self._listed(self._is_ours, self.observe)

    def list_all(self) -> InstanceList:
        """Return the instances of every cluster as they are now; nothing is moved on."""
        return self._listed(lambda _: True, lambda name: self._look(name, moves_on=False))

    def _listed(
        self,
        is_wanted: Callable[[manifests.InstanceRecord], bool],
        look: Callable[[str], Instance | None],
    ) -> InstanceList:
        items, is_complete = [], True
        for entry in self._entries():
            if not manifests.is_name(entry.name):
                continue
            try:
                record = self._record(entry)
                if record is not None and is_wanted(record):
                    items.append(look(entry.name))
            except EnvironmentProviderError:
                is_complete = False
        return InstanceList(tuple(item for item in items if item is not None), is_complete)

    def _turn(self, name: str) -> threading.Lock:
        return self._turns[hash(name) % len(self._turns)]

    def _entries(self) -> list[Path]:
        return sorted(self._root.iterdir()) if self._root.exists() else []

    def _is_ours(self, record: manifests.InstanceRecord) -> bool:
        return record.labels.get(CLUSTER_LABEL) == self._cluster_id

    def _record(self, directory: Path) -> manifests.InstanceRecord | None:
        """Return whose the directory is; None when it is no instance.

        EnvironmentProviderError when a process lives there and the record is damaged: whose it
        is cannot be told, and absence must not be concluded.
        """
        record = manifests.parse_record(layout.read_json(directory / layout.RECORD))
        if record is None and processes.is_locked(directory):
            # A directory that is being removed right now looks the same for a moment.
            record = manifests.parse_record(layout.read_json(directory / layout.RECORD))
            if record is None and directory.exists():
                raise EnvironmentProviderError(
                    f"{directory / layout.RECORD} is damaged; end the process that locks"
                    f" {directory / layout.LOCK} and remove the directory"
                )
        return record

    def _is_taken(self, request: CreateRequest) -> bool:
        """Tell whether our instance exists; PermanentProviderError when a foreign one does."""
        directory = self._root / request.name
        record = self._record(directory)
        if record is None:
            if directory.exists():
                self._remove(directory)
            return False
        self._require_no_foreign(request, record)
        return True

    def _require_no_foreign(
        self, request: CreateRequest, record: manifests.InstanceRecord | None
    ) -> None:
        if record is None:
            return
        for key in (UID_LABEL, CLUSTER_LABEL):
            if record.labels.get(key) != request.labels.get(key):
                raise PermanentProviderError(
                    f"name {request.name} is taken by a foreign instance in"
                    f" {self._root / request.name}"
                )

    def _claim(self, request: CreateRequest, given_up: threading.Event) -> int | None:
        """Make the directory, complete and locked, in one step; None when somebody was faster."""
        draft = Path(tempfile.mkdtemp(prefix=_NEW, dir=self._root))
        lock = None
        try:
            record = manifests.record_of(request, self._clock.now())
            layout.write_atomically(draft / layout.RECORD, record)
            lock = processes.try_lock(draft)
            if given_up.is_set():
                raise InterruptedError(errno.EINTR, "the create was given up")
            draft.rename(self._root / request.name)
        except OSError as err:
            if lock is not None:
                os.close(lock)
            shutil.rmtree(draft, ignore_errors=True)
            if err.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return None
            raise
        return lock

    def _tell_to_end(self, directory: Path) -> None:
        mark = directory / layout.DELETION
        since = (layout.read_json(mark) or {}).get("since")
        if since is None:
            since = boottime()
            layout.write_atomically(mark, {"since": since})
        processes.tell_to_end(directory, by_force=boottime() - since > TERM_SECONDS)

    def _remove(self, directory: Path) -> None:
        """Take the name away first, so that nobody ever sees half an instance."""
        gone = self._root / f"{_OLD}{secrets.token_hex(8)}"
        with contextlib.suppress(FileNotFoundError):
            directory.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)

    def _sweep(self) -> None:
        oldest = self._clock.now() - _LITTER_AGE
        for entry in self._entries():
            if entry.name.startswith((_NEW, _OLD)) and _changed_at(entry) < oldest:
                shutil.rmtree(entry, ignore_errors=True)


def _changed_at(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except FileNotFoundError:
        return datetime.max.replace(tzinfo=UTC)

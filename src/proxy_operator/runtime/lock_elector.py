"""Takes part in an election by a record that all candidates write to.

The rule: every write names the version of the record that it replaces, so of several candidates
one succeeds; and no renewal outlasts the term it is to prolong.
"""

import asyncio
import logging
import random
import socket
import uuid
from typing import Final

from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.election import (
    JITTER,
    LockStore,
    Observation,
    StoredRecord,
    claimed,
    released,
)
from proxy_operator.runtime.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    ObjectError,
)
from proxy_operator.runtime.leader_election import LeadershipLostError
from proxy_operator.runtime.ports import LeaderRecorder
from proxy_operator.runtime.term import Term

logger = logging.getLogger(__name__)

_LEAST_PAUSE: Final = 0.01
"""Seconds; a clock may be a little early."""


def new_identity() -> str:
    """Return an identity that no other process has, this one's successor included."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LockElector:
    """One candidate (`leader_election.Elector`). Its methods are called one after the other."""

    def __init__(
        self,
        store: LockStore,
        identity: str,
        term: Term,
        clock: Clock,
        recorder: LeaderRecorder,
    ) -> None:
        """`identity` must be this process's alone; `term` opens and closes with its leadership."""
        self._store = store
        self._identity = identity
        self._term = term
        self._timing = term.timing
        self._clock = clock
        self._recorder = recorder
        self._seen = Observation(identity, term.timing.lease_duration)
        self._stored: StoredRecord | None = None
        self._released: StoredRecord | None = None
        self._has_claimed = False
        self._told = ""

    async def acquire(self) -> None:
        """Return when this process leads. Waits out whatever keeps it from asking."""
        self._record(is_leading=False)
        logger.info("standing for election", extra=self._names())
        while True:
            if await self._stand():
                break
            await asyncio.sleep(self._pause())
        self._record(is_leading=True)
        transitions = self._seen.record.transitions if self._seen.record else 0
        logger.info("acquired the leader lock", extra=self._names() | {"transitions": transitions})

    async def hold(self) -> None:
        """Renew until cancelled. LeadershipLostError when another one leads, or may from now on."""
        failure = "the process was suspended, or its event loop stalled"
        pause = self._timing.retry_period.total_seconds()
        while True:
            await asyncio.sleep(min(pause, self._term.remaining()))
            if not self._term.is_open:
                deadline = self._timing.renew_deadline.total_seconds()
                raise self._lost(f"not renewed within {deadline:g} s: {failure}")
            began = self._clock.monotonic()
            failure = await self._renew() or failure
            took = self._clock.monotonic() - began
            pause = max(0.0, self._timing.retry_period.total_seconds() - took)

    async def release(self) -> None:
        """Give leadership up, so that a successor need not wait. Harmless when not leading.

        Whatever acted as the leader must have ended. ObjectError or TimeoutError when it could not
        be told.
        """
        self._term.close()
        self._record(is_leading=False)
        if not self._has_claimed:
            return
        try:
            await self._release_once()
        except ConflictError:
            # A renewal that the stop cut off arrived after all. There was one at most.
            await self._release_once()

    @property
    def released(self) -> StoredRecord | None:
        """The record as this process left it when it gave leadership up; None if it did not."""
        return self._released

    async def _stand(self) -> bool:
        """Ask once for leadership; tell whether this process has it."""
        try:
            await self._ask()
        except (AlreadyExistsError, ConflictError):
            logger.debug("another candidate was faster", extra=self._names())
        except (ObjectError, TimeoutError) as err:
            self._tell(f"the leader lock cannot be claimed: {self._said(err)}", logging.WARNING)
        else:
            if self._seen.rival:
                self._tell(f"waiting for the leader lock, held by {self._seen.rival}", logging.INFO)
        return self._term.is_open

    async def _renew(self) -> str:
        """Renew once; return what went wrong, nothing when all is well."""
        try:
            async with asyncio.timeout(self._term.remaining()):
                await self._ask()
        except (ObjectError, TimeoutError) as err:
            failure = self._said(err)
            logger.warning(
                "the leader lock was not renewed",
                extra=self._names() | {"error": failure, "seconds_left": self._term.remaining()},
            )
            return failure
        if self._seen.rival:
            raise self._lost(f"{self._seen.rival} holds it")
        return ""

    async def _ask(self) -> None:
        """Renew what is ours as it was seen last; else look, and claim what is free."""
        if self._seen.is_ours and self._stored is not None:
            try:
                return await self._write(self._stored)
            except (ConflictError, NotFoundError) as err:
                logger.info(
                    "the leader lock is not as it was seen last, reading it",
                    extra=self._names() | {"error": str(err)},
                )
        stored = await self._read()
        if not self._seen.free_in(self._clock.monotonic()):
            await self._write(stored)
        return None

    async def _read(self) -> StoredRecord | None:
        try:
            async with self._attempt():
                stored = await self._store.get()
        except NotFoundError:
            self._stored = None
            return None
        self._note(stored)
        return stored

    async def _write(self, stored: StoredRecord | None) -> None:
        record = claimed(
            self._seen.record, self._identity, self._timing.lease_duration, self._clock.now()
        )
        self._has_claimed = True
        asked_at = self._term.now()
        async with self._attempt():
            if stored is None:
                written = await self._store.create(record)
            else:
                written = await self._store.update(stored, record)
        self._note(written)
        self._term.extend(asked_at)

    def _attempt(self) -> asyncio.Timeout:
        """Bound one request, not several.

        One that is cut off costs its connection, and far from the server a new connection takes
        most of the time that a request may take.
        """
        return asyncio.timeout(self._timing.attempt.total_seconds())

    async def _release_once(self) -> None:
        stored = await self._read()
        if stored is None or not self._seen.is_ours:
            return
        self._released = await self._store.update(
            stored, released(stored.record, self._clock.now())
        )
        self._note(self._released)
        logger.info("released the leader lock", extra=self._names())

    def _note(self, stored: StoredRecord) -> None:
        self._stored = stored
        self._seen.see(stored.record, self._clock.monotonic())

    def _pause(self) -> float:
        """Return the seconds until the next try: when the record expires, if that is sooner."""
        spread = random.uniform(1.0, 1.0 + JITTER)  # noqa: S311 - no secret
        pause = self._timing.retry_period.total_seconds() * spread
        free_in = self._seen.free_in(self._clock.monotonic())
        return max(_LEAST_PAUSE, min(pause, free_in)) if free_in else pause

    def _lost(self, why: str) -> LeadershipLostError:
        self._term.lose()
        self._record(is_leading=False)
        logger.error("lost the leader lock", extra=self._names() | {"error": why})
        return LeadershipLostError(f"the leader lock {self._store.name} was lost: {why}")

    def _said(self, err: Exception) -> str:
        if isinstance(err, TimeoutError):
            return f"no answer within {self._timing.attempt.total_seconds():g} s"
        return str(err)

    def _tell(self, message: str, level: int) -> None:
        """Log what keeps this process waiting, once until it is something else."""
        if message != self._told:
            self._told = message
            logger.log(level, message, extra=self._names())

    def _record(self, *, is_leading: bool) -> None:
        self._recorder.leads(self._store.name, is_leading=is_leading)

    def _names(self) -> dict[str, object]:
        return {"lock": self._store.name, "identity": self._identity}

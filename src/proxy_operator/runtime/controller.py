"""Workers that take keys from a queue and pass them to a reconciler.

What happens after a pass is decided in one place, `_settle`. A pass has no deadline of its own:
the calls it makes have theirs.
"""

import asyncio
import logging
from datetime import timedelta

from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.errors import ConflictError, ObjectError
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.ports import Outcome, ReconcileRecorder, Unrecorded
from proxy_operator.runtime.reconciler import Reconciler, Result, TerminalError
from proxy_operator.runtime.workqueue import ShutDownError, WorkQueue

logger = logging.getLogger(__name__)


class Controller:
    """A reconciler at work, under the name of its queue."""

    def __init__(
        self,
        reconciler: Reconciler,
        queue: WorkQueue,
        *,
        clock: Clock,
        recorder: ReconcileRecorder | None = None,
        workers: int = 3,
        expected: tuple[type[Exception], ...] = (),
    ) -> None:
        """Errors of the types in `expected`, and ObjectErrors, are logged without a traceback."""
        self.name = queue.name
        self._reconciler = reconciler
        self._queue = queue
        self._clock = clock
        self._recorder = recorder or Unrecorded()
        self._workers = workers
        self._expected: tuple[type[Exception], ...] = (ObjectError, *expected)

    async def run(self) -> None:
        """Work until the queue shuts down; cancelling cuts the running passes off."""
        self._recorder.sized(self.name, self._workers)
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"{self.name}-{number}")

    async def drain(self, within: timedelta) -> None:
        """Begin no pass any more and wait for the running ones."""
        if not await self._queue.drain(within):
            logger.warning(
                "passes did not end in time and are cut off", extra={"controller": self.name}
            )

    async def _work(self) -> None:
        while True:
            try:
                key = await self._queue.get()
            except ShutDownError:
                return
            try:
                await self._pass(key)
            finally:
                self._queue.done(key)
            # A backlog of passes that never wait must not keep the loop from everybody else.
            await asyncio.sleep(0)

    async def _pass(self, key: ObjectKey) -> None:
        started = self._clock.monotonic()
        outcome: Outcome | None = None
        self._recorder.started(self.name)
        try:
            outcome = self._settle(key, await self._attempt(key))
        finally:
            took = timedelta(seconds=self._clock.monotonic() - started)
            self._recorder.finished(self.name, outcome, took)

    async def _attempt(self, key: ObjectKey) -> Result | Exception:
        try:
            return await self._reconciler.reconcile(key)
        except Exception as err:  # noqa: BLE001 - any error is an outcome, and is logged as one
            return err

    def _settle(self, key: ObjectKey, ended: Result | Exception) -> Outcome:
        match ended:
            case TerminalError():
                self._queue.forget(key)
                logger.error("gave up until something changes", extra=self._fields(key, ended))
                return Outcome.TERMINAL_ERROR
            case Exception():
                self._queue.add_rate_limited(key)
                self._log_failure(key, ended)
                return Outcome.ERROR
            case Result(requeue_after=timedelta() as delay):
                self._queue.forget(key)
                self._queue.add_after(key, delay)
                return Outcome.REQUEUE_AFTER
            case _:
                self._queue.forget(key)
                return Outcome.SUCCESS

    def _log_failure(self, key: ObjectKey, err: Exception) -> None:
        fields = self._fields(key, err)
        if isinstance(err, ConflictError):
            logger.debug("the object changed meanwhile, trying again", extra=fields)
        elif isinstance(err, self._expected):
            logger.warning("a pass failed and will be repeated", extra=fields)
        else:
            logger.error("a pass crashed and will be repeated", exc_info=err, extra=fields)

    def _fields(self, key: ObjectKey, err: Exception) -> dict[str, object]:
        return {
            "controller": self.name,
            "key": str(key),
            "error": f"{type(err).__name__}: {err}",
            "requeues": self._queue.num_requeues(key),
        }

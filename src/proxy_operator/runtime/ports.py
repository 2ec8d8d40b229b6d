"""What the machinery tells those who measure it.

Implementations neither block nor raise: they are called between two awaits of the hot path.
Each method names the metric that users of controller-runtime know for it.
"""

from datetime import timedelta
from enum import StrEnum
from typing import Protocol


class QueueGauges(Protocol):
    """Readings of a queue, taken at the moment somebody asks."""

    @property
    def name(self) -> str: ...

    def depth(self) -> int:
        """Return how many keys wait for a worker (`workqueue_depth`)."""

    def unfinished_work(self) -> timedelta:
        """Return the summed age of the passes now running (`workqueue_unfinished_work_seconds`).

        Growing without end means that workers hang.
        """

    def longest_running(self) -> timedelta:
        """Return the age of the oldest running pass.

        `workqueue_longest_running_processor_seconds`.
        """


class QueueRecorder(Protocol):
    """Measures of the queues; `queue` is the name of one."""

    def opened(self, queue: QueueGauges) -> None:
        """Take note of a queue, whose gauges are to be read at every scrape."""

    def added(self, queue: str) -> None:
        """Count a key that began to wait (`workqueue_adds_total`)."""

    def taken(self, queue: str, waited: timedelta) -> None:
        """Note how long a key waited for its worker (`workqueue_queue_duration_seconds`)."""

    def done(self, queue: str, worked: timedelta) -> None:
        """Note how long a worker had a key (`workqueue_work_duration_seconds`)."""

    def retried(self, queue: str) -> None:
        """Count a delayed add, whether backoff or a chosen wait (`workqueue_retries_total`)."""


class Outcome(StrEnum):
    """How a pass ended, in the values of `controller_runtime_reconcile_total{result}`."""

    SUCCESS = "success"
    REQUEUE_AFTER = "requeue_after"
    ERROR = "error"
    TERMINAL_ERROR = "terminal_error"
    """Counts as `error`, and in `controller_runtime_terminal_reconcile_errors_total`."""


class ReconcileRecorder(Protocol):
    """Measures of the controllers; `controller` is the name of one."""

    def sized(self, controller: str, workers: int) -> None:
        """Note how many workers there are (`controller_runtime_max_concurrent_reconciles`)."""

    def started(self, controller: str) -> None:
        """Count one more busy worker (`controller_runtime_active_workers`)."""

    def finished(self, controller: str, outcome: Outcome | None, took: timedelta) -> None:
        """Count a pass, and one busy worker less.

        `controller_runtime_reconcile_total`, `…_reconcile_errors_total`,
        `…_reconcile_time_seconds`. No outcome: the pass was cancelled.
        """


class LeaderRecorder(Protocol):
    """Measures of leader election."""

    def leads(self, name: str, *, is_leading: bool) -> None:
        """Note whether this process leads; `name` is the lock (`leader_election_master_status`)."""


class Unrecorded:
    """Measures nothing; serves where a recorder of the machinery is asked for."""

    def opened(self, queue: QueueGauges) -> None: ...

    def added(self, queue: str) -> None: ...

    def taken(self, queue: str, waited: timedelta) -> None: ...

    def done(self, queue: str, worked: timedelta) -> None: ...

    def retried(self, queue: str) -> None: ...

    def sized(self, controller: str, workers: int) -> None: ...

    def started(self, controller: str) -> None: ...

    def finished(self, controller: str, outcome: Outcome | None, took: timedelta) -> None: ...

    def leads(self, name: str, *, is_leading: bool) -> None: ...

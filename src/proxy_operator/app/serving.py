"""Signals, event loop and order of a process that serves until it is told to stop.

The first SIGTERM, SIGINT or SIGHUP asks for a graceful end, a second one ends the process there
and then: every state on disk and at the providers must allow that anyway.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, Protocol

from proxy_operator.adapters.web.bind import Bind
from proxy_operator.app.settings import Settings

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Loop = Callable[[], asyncio.AbstractEventLoop]


class Listening(NamedTuple):
    """Where the operator was reached at last: the ports that port 0 turned into."""

    discovery: Bind
    metrics: Bind
    health_probe: Bind


class Operator(Protocol):
    """What is served."""

    def __call__(
        self,
        settings: Settings,
        *,
        stop: asyncio.Event,
        on_started: Callable[[Listening], None],
    ) -> Coroutine[Any, Any, None]:
        """Work until `stop` is set, then drain and return.

        `on_started` is called once, when every server listens and every cache is filled. What
        keeps the operator from starting or working is raised.
        """


class Session(Protocol):
    """What accompanies a run."""

    async def begin(self, listening: Listening) -> None:
        """Do what follows the start. Cancelled when the operator is to stop before it is done."""

    async def end(self) -> None:
        """Do what precedes the stop, while the operator still works."""


def loop_factory() -> Loop:
    """Return the maker of event loops: uvloop's where it is installed."""
    try:
        import uvloop  # noqa: PLC0415 - optional: it installs on Linux and CPython only
    except ImportError:
        return asyncio.new_event_loop
    factory: Loop = uvloop.new_event_loop
    return factory


def serve(settings: Settings, operator: Operator, session: Session) -> None:
    """Run an operator and its session until a signal. Raises what stopped it before one."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(run_until_signal(settings, operator, session))


async def run_until_signal(settings: Settings, operator: Operator, session: Session) -> None:
    """Serve on the running loop."""
    leave = asyncio.Event()
    _on_signals(leave)
    await run_until(leave, settings, operator, session)


async def run_until(
    leave: asyncio.Event, settings: Settings, operator: Operator, session: Session
) -> None:
    """Serve until `leave` is set: the session's end comes first, then the operator's.

    When the session fails, only the operator is stopped: its end would delete what others made.
    """
    stop = asyncio.Event()
    started: asyncio.Future[Listening] = asyncio.get_running_loop().create_future()
    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:
        group.create_task(operator(settings, stop=stop, on_started=started.set_result))
        try:
            await _accompany(session, started, leave)
        except Exception as err:  # noqa: BLE001 - raised once the operator has drained
            failure = err
        stop.set()
    if failure is not None:
        raise failure


async def _accompany(
    session: Session, started: asyncio.Future[Listening], leave: asyncio.Event
) -> None:
    async with asyncio.TaskGroup() as group:
        beginning = group.create_task(_begin(session, started))
        await leave.wait()
        beginning.cancel()
    if started.done():
        await session.end()


async def _begin(session: Session, started: asyncio.Future[Listening]) -> None:
    # Shielded: being told to leave must not take the operator's way to say that it started.
    await session.begin(await asyncio.shield(started))


def _on_signals(leave: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()

    def received(number: int) -> None:
        if leave.is_set():
            sys.stdout.flush()
            os._exit(128 + number)
        leave.set()

    for number in _SIGNALS:
        # Started under nohup, a hangup stays ignored.
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, received, number)

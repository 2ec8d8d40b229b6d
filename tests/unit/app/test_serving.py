"""The order of a run: start, session, end of session, stop; and what each failure leaves."""

import asyncio
import signal
import subprocess
import sys
import textwrap

import pytest

from proxy_operator.adapters.web.bind import Bind
from proxy_operator.app.serving import Listening, run_until
from proxy_operator.app.settings import load_settings

LISTENING = Listening(Bind("127.0.0.1", 1), Bind("127.0.0.1", 2), Bind("127.0.0.1", 3))
SETTINGS = load_settings({"standalone": True}, {})

pytestmark = pytest.mark.looptime(start=0)


class Diary:
    """An operator and a session that write down what happens to them."""

    def __init__(self, *, starts=True, operator_fails=None, begin=None, end_takes=0.0):
        self.entries: list[str] = []
        self._starts = starts
        self._operator_fails = operator_fails
        self._begin = begin
        self._end_takes = end_takes

    async def operator(self, settings, *, stop, on_started):
        assert settings is SETTINGS
        if self._starts:
            await asyncio.sleep(1)
            self.entries.append("started")
            on_started(LISTENING)
        if self._operator_fails:
            await asyncio.sleep(1)
            raise self._operator_fails
        await stop.wait()
        self.entries.append("draining")
        await asyncio.sleep(1)
        self.entries.append("stopped")

    async def begin(self, listening):
        assert listening == LISTENING
        self.entries.append("begin")
        try:
            if isinstance(self._begin, Exception):
                raise self._begin
            await asyncio.sleep(self._begin or 0)
            self.entries.append("begun")
        except asyncio.CancelledError:
            self.entries.append("begin cancelled")
            raise

    async def end(self):
        self.entries.append("end")
        await asyncio.sleep(self._end_takes)
        self.entries.append("ended")


async def serve(diary, leave_after):
    leave = asyncio.Event()
    asyncio.get_running_loop().call_later(leave_after, leave.set)
    async with asyncio.timeout(1000):
        await run_until(leave, SETTINGS, diary.operator, diary)
    return diary.entries


async def test_the_session_ends_while_the_operator_still_works():
    assert await serve(Diary(end_takes=5), 10) == [
        "started",
        "begin",
        "begun",
        "end",
        "ended",
        "draining",
        "stopped",
    ]


async def test_a_signal_during_the_beginning_cuts_it_short():
    assert await serve(Diary(begin=60), 10) == [
        "started",
        "begin",
        "begin cancelled",
        "end",
        "ended",
        "draining",
        "stopped",
    ]


async def test_a_signal_before_the_start_stops_without_a_session():
    assert await serve(Diary(starts=False), 10) == ["draining", "stopped"]


async def test_an_operator_that_fails_is_not_waited_for():
    diary = Diary(operator_fails=OSError("port taken"))
    with pytest.raises(ExceptionGroup) as caught:
        await serve(diary, 500)
    assert caught.group_contains(OSError, match="port taken")
    assert diary.entries == ["started", "begin", "begun"]
    assert asyncio.get_running_loop().time() < 10


async def test_a_session_that_fails_deletes_nothing_and_the_operator_is_drained():
    diary = Diary(begin=ValueError("bad manifest"))
    with pytest.raises(ExceptionGroup) as caught:
        await serve(diary, 500)
    assert caught.group_contains(ValueError, match="bad manifest")
    assert diary.entries == ["started", "begin", "draining", "stopped"]
    assert asyncio.get_running_loop().time() < 10


SCRIPT = textwrap.dedent(
    """
    import asyncio, sys
    from tests.unit.app.test_serving import Diary, SETTINGS
    from proxy_operator.app.serving import serve

    class Loud(Diary):
        async def begin(self, listening):
            print("up", flush=True)
        async def end(self):
            print("end", flush=True)
            await asyncio.sleep(float(sys.argv[1]))

    diary = Loud()
    serve(SETTINGS, diary.operator, diary)
    print("done", flush=True)
    """
)


def run_and_signal(*numbers: int, end_takes: str) -> tuple[int, str]:
    command = [sys.executable, "-c", SCRIPT, end_takes]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = []
        try:
            for number in numbers:
                said.append(process.stdout.readline())
                process.send_signal(number)
            said.append(process.stdout.read())
            process.wait(timeout=30)
        finally:
            process.kill()
    return process.returncode, "".join(said)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_one_signal_is_a_graceful_end(number):
    assert run_and_signal(number, end_takes="0") == (0, "up\nend\ndone\n")


def test_a_second_signal_ends_at_once():
    code, said = run_and_signal(signal.SIGINT, signal.SIGTERM, end_takes="60")
    assert (code, said) == (128 + signal.SIGTERM, "up\nend\n")

"""A leader that is stopped for longer than its lease and then goes on, as a real process."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from proxy_operator.runtime.clock import boottime
from proxy_operator.runtime.watchdog import EXIT_CODE

ROOT = Path(__file__).resolve().parents[2]

LEADER = """
import asyncio
from datetime import timedelta
from proxy_operator.provisioning.term_fence import TermFence
from proxy_operator.runtime.clock import SystemClock, boottime
from proxy_operator.runtime.election import Timing
from proxy_operator.runtime.lock_elector import LockElector, new_identity
from proxy_operator.runtime.ports import Unrecorded
from proxy_operator.runtime.term import Term
from proxy_operator.runtime.watchdog import Watchdog
from tests.lock_records import Line, Server

TIMING = Timing(timedelta(seconds=2), timedelta(seconds=1.5), timedelta(seconds=0.2))

async def act(fence):
    while True:
        asked_at = boottime()
        fence.check()
        print(asked_at, flush=True)
        await asyncio.sleep(0.01)

async def main():
    term = Term(TIMING, Watchdog())
    elector = LockElector(Line(Server()), new_identity(), term, SystemClock(), Unrecorded())
    await elector.acquire()
    async with asyncio.TaskGroup() as group:
        group.create_task(elector.hold())
        group.create_task(act(TermFence(term)))

asyncio.run(main())
"""


async def test_it_does_nothing_more_and_ends():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LEADER, stdout=PIPE, stderr=PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            for _ in range(20):
                assert await process.stdout.readline()
            process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(2.2)
            went_on_at = boottime()
            process.send_signal(signal.SIGCONT)
            acts, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    # Whichever is scheduled first, the loop that finds its term over or the watchdog.
    assert process.returncode in (1, EXIT_CODE)
    assert b"was lost" in said or b"watchdog: leadership expired" in said or b"Fenced" in said
    assert [at for at in acts.split() if float(at) >= went_on_at] == []

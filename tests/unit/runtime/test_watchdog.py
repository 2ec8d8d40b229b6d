"""The watchdog in real processes: what it is for cannot happen to a loop that runs tests."""

import asyncio
import contextlib
import os
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator

from proxy_operator.runtime.clock import boottime
from proxy_operator.runtime.watchdog import EXIT_CODE, Watchdog

LEASE = 0.6
"""Seconds; long enough for a busy machine to renew three times."""

LEADER = f"""
import asyncio, sys, time
from proxy_operator.runtime.clock import boottime
from proxy_operator.runtime.watchdog import Watchdog

def stall_here():
    time.sleep(60)

async def renew(watchdog, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        watchdog.arm(boottime() + {LEASE})
        await asyncio.sleep({LEASE} / 10)

async def main():
    watchdog = Watchdog()
    await renew(watchdog, {LEASE} * 2)
    print("led", flush=True)
    {{then}}

asyncio.run(main())
"""


@contextlib.asynccontextmanager
async def leader(then: str, stderr: int = PIPE) -> AsyncIterator[Process]:
    """A process that has led for longer than its lease; `then` says what it does next."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LEADER.format(then=then), stdout=PIPE, stderr=stderr
    )
    try:
        async with asyncio.timeout(60):
            assert process.stdout is not None
            assert await process.stdout.readline() == b"led\n"
            yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def test_a_stalled_loop_ends_the_process_and_says_where_it_stood():
    async with leader("stall_here()") as process:
        _, said = await process.communicate()
    assert process.returncode == EXIT_CODE
    text = said.decode()
    assert text.startswith("watchdog: leadership expired")
    assert "The loop is at stall_here (<string>:7) < main (<string>:" in text
    assert text.count("\n") == 1


async def test_a_disarmed_process_may_stall():
    async with leader("watchdog.disarm(); time.sleep(1.3); sys.exit(3)") as process:
        assert await process.wait() == 3


async def test_a_process_armed_again_is_watched_again():
    again = "watchdog.disarm(); await renew(watchdog, 0.5); stall_here()"
    async with leader(again) as process:
        assert await process.wait() == EXIT_CODE


async def test_a_stderr_that_nobody_reads_does_not_save_the_process():
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4096)
        os.set_blocking(writer, True)
        async with leader("sys.stderr.write('blocked')", stderr=writer) as process:
            assert await process.wait() == EXIT_CODE
    finally:
        os.close(reader)
        os.close(writer)


def watching() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "watchdog"]


def test_there_is_a_thread_only_while_armed():
    watchdog = Watchdog()
    watchdog.disarm()
    assert not watching()
    watchdog.arm(boottime() + 600)
    watchdog.arm(boottime() + 601)
    [thread] = watching()
    assert thread.daemon
    watchdog.disarm()
    thread.join(10)
    assert not watching()

"""The suite's own ground: virtual time moves the loop's clock and nothing waits for real."""

import asyncio
import time

import pytest

from proxy_operator.runtime.clock import LoopClock
from tests.builders import EPOCH


@pytest.mark.looptime(start=0)
async def test_an_hour_passes_in_no_time():
    clock = LoopClock(EPOCH)
    before = time.monotonic()
    await asyncio.sleep(3600)
    assert (clock.now() - EPOCH).total_seconds() == pytest.approx(3600)
    assert time.monotonic() - before < 5

"""The sweep runs at its interval until it is stopped."""

import asyncio
from datetime import timedelta

import pytest

from proxy_operator.leasing.sweep import Sweeper


class Counting:
    swept = 0

    def sweep(self) -> None:
        self.swept += 1


@pytest.mark.looptime(start=0)
async def test_sweeps_at_every_interval_until_cancelled():
    store = Counting()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(95):
            await Sweeper(store, timedelta(seconds=30)).run()
    assert store.swept == 3

"""What an operator's scrape says of money, with everything wired as it is at home."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from proxy_operator.adapters.metrics.families import render
from proxy_operator.app.settings import load_settings
from proxy_operator.app.wiring import Fleet, Foundations, build_fleet, new_metrics
from proxy_operator.controllers.events import Batch, EventQueue
from proxy_operator.domain.names import instance_name, owner_labels
from proxy_operator.health.ports import ProbeOutcome
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    OwnLimitError,
    QuotaExceededError,
    StockOutError,
)
from proxy_operator.runtime.manager import Manager
from proxy_operator.testing.fake_objects import FakeObjectClient
from proxy_operator.testing.fake_provider import FakeProvider
from tests.builders import EPOCH, a_clock, a_create_request
from tests.worlds import CLUSTER

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

CALLS = 'proxy_operator_provider_requests_total{op="create",provider="fake",result="%s"}'
LIMITS = 'proxy_operator_own_limit_refusals_total{limit="%s",provider="fake"}'
DELETED = 'proxy_operator_orphans_deleted_total{provider="fake"}'
LEFT = 'proxy_operator_orphans_left{provider="fake"}'
SWEEPS = 'proxy_operator_sweeps_total{provider="fake",result="%s"}'
SWEPT_AT = 'proxy_operator_sweep_last_success_timestamp_seconds{provider="fake"}'


class Forgetful:
    """Where Events end."""

    async def write(self, batch: Batch) -> Batch:
        return {}


class Unasked:
    """A prober for fleets that have nothing to probe."""

    async def probe(self, *_: Any) -> ProbeOutcome:
        raise NotImplementedError

    async def probe_directly(self, *_: Any) -> ProbeOutcome:
        raise NotImplementedError


class Site:
    """An operator's fleet on a fake provider, beside a provider that cannot be made."""

    def __init__(self, **given: Any) -> None:
        clock = a_clock()
        self.provider = FakeProvider(clock, cluster_id=CLUSTER)
        self.base = Foundations(
            client=FakeObjectClient(clock),
            events=EventQueue(Forgetful(), clock),
            cluster_id=CLUSTER,
            providers={"fake": lambda: self.provider, "without": self._none},
            clock=clock,
            manager=Manager(clock),
            prober=Unasked(),
            metrics=new_metrics(),
        )
        self.fleet: Fleet = build_fleet(
            self.base, load_settings({"standalone": True, **given}, {}), None
        )

    def _none(self) -> Provider:
        raise EnvironmentProviderError("its extra is not installed")

    def scraped(self, series: str) -> float | None:
        """Return the value of a series, with its labels in the order of their names."""
        text = render(self.base.metrics)[0].decode()
        found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else None

    def plant_orphan(self) -> None:
        labels = owner_labels(uid="uid-1", cluster_id=CLUSTER, spec_hash="0" * 32)
        self.provider.plant(instance_name("uid-1"), labels, age=timedelta(hours=1))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            working = group.create_task(self.base.manager.run())
            yield
            self.base.manager.request_stop()
            await working


async def test_every_provider_that_can_be_had_counts_from_0_before_anything_is_asked_of_it():
    site = Site()
    for result in ("success", "not_found", "quota", "own_limit", "permanent", "transient"):
        assert site.scraped(CALLS % result) == 0
    for limit in ("max_instances", "max_creates_per_minute"):
        assert site.scraped(LIMITS % limit) == 0
    assert b'provider="without"' not in render(site.base.metrics)[0]
    assert not site.provider.calls


async def test_a_refusal_by_the_own_limit_is_none_by_the_provider():
    site = Site(max_instances="1")
    provider = site.fleet.providers.get("fake")
    await provider.create(a_create_request())
    for _ in range(2):
        with pytest.raises(OwnLimitError):
            await provider.create(a_create_request())
    assert site.scraped(LIMITS % "max_instances") == 2
    assert site.scraped(LIMITS % "max_creates_per_minute") == 0
    assert site.scraped(CALLS % "own_limit") == 2
    assert site.scraped(CALLS % "quota") == 0


@pytest.mark.parametrize("error", [QuotaExceededError("full"), StockOutError("none left")])
async def test_a_refusal_by_the_provider_is_none_by_the_own_limit(error: Exception):
    site = Site(max_creates_per_minute="1")
    site.provider.fail("create", error)
    with pytest.raises(type(error)):
        await site.fleet.providers.get("fake").create(a_create_request())
    assert site.scraped(CALLS % "quota") == 1
    assert site.scraped(LIMITS % "max_creates_per_minute") == 0


async def test_the_sweep_counts_what_it_deletes():
    site = Site()
    site.plant_orphan()
    async with site.running():
        await asyncio.sleep(599)
        assert (site.scraped(DELETED), site.scraped(SWEEPS % "success")) == (0, 0)
        assert (site.scraped(LEFT), site.scraped(SWEPT_AT)) == (None, None)
        await asyncio.sleep(2)
        assert (site.scraped(DELETED), site.scraped(SWEEPS % "success")) == (1, 1)
        assert (site.scraped(LEFT), site.scraped(SWEPT_AT)) == (0, EPOCH.timestamp() + 600)
    assert site.provider.instances == {}


async def test_a_dry_run_deletes_nothing_and_shows_what_costs_money():
    site = Site(gc_dry_run=True)
    site.plant_orphan()
    async with site.running():
        await asyncio.sleep(1201)
        assert (site.scraped(DELETED), site.scraped(LEFT)) == (0, 1)
        assert site.scraped(SWEEPS % "success") == 2
    assert len(site.provider.instances) == 1

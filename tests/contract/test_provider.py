"""Every provider, and the fake, keep the same promises."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

pytest.register_assert_rewrite("proxy_operator.testing.provider_contract")

from proxy_operator.adapters.providers.kubernetes.manifests import (  # noqa: E402 - after the hook
    PodSettings,
)
from proxy_operator.adapters.providers.kubernetes.provider import KubernetesProvider  # noqa: E402
from proxy_operator.adapters.providers.local.provider import (  # noqa: E402
    LocalProvider,
)
from proxy_operator.domain.proxy import ProviderName, ProxySpec  # noqa: E402
from proxy_operator.runtime.clock import LoopClock, SystemClock  # noqa: E402
from proxy_operator.testing.fake_provider import FakeProvider  # noqa: E402
from proxy_operator.testing.provider_contract import (  # noqa: E402
    CLUSTER_ID,
    OTHER_CLUSTER_ID,
    ProviderContract,
    ProviderHarness,
    SurveyorContract,
)
from tests.builders import EPOCH  # noqa: E402
from tests.local_instances import end_all  # noqa: E402
from tests.unit.adapters.providers.kubernetes.fake_cluster import FakeCluster  # noqa: E402


@pytest.mark.looptime(start=0)
class TestFakeProvider(ProviderContract, SurveyorContract):
    @pytest.fixture
    def harness(self) -> ProviderHarness:
        clock = LoopClock(EPOCH)
        provider = FakeProvider(clock, cluster_id=CLUSTER_ID, zones=("a", "b"))
        other = FakeProvider(
            clock, cluster_id=OTHER_CLUSTER_ID, zones=("a", "b"), world=provider.world
        )
        return ProviderHarness(
            provider, other, patience=timedelta(minutes=1), poll=timedelta(seconds=1)
        )


@pytest.mark.looptime(start=0)
class TestSlowFakeProvider(ProviderContract, SurveyorContract):
    """A fake that shows instances late and lets them go slowly."""

    @pytest.fixture
    def harness(self) -> ProviderHarness:
        clock = LoopClock(EPOCH)
        provider = FakeProvider(clock, cluster_id=CLUSTER_ID)
        other = FakeProvider(clock, cluster_id=OTHER_CLUSTER_ID, world=provider.world)
        for fake in (provider, other):
            fake.appear_delay = timedelta(seconds=5)
            fake.terminating_for = timedelta(seconds=7)
            fake.terminating_polls = 3
            fake.latency = timedelta(milliseconds=100)
        return ProviderHarness(
            provider, other, patience=timedelta(minutes=1), poll=timedelta(seconds=1)
        )


class TestLocalProvider(ProviderContract, SurveyorContract):
    """Real processes, real time: nothing here waits longer than a process takes to start."""

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Iterator[ProviderHarness]:
        root = tmp_path / "instances"
        provider, other = (
            LocalProvider(root, bind="127.0.0.1", cluster_id=cluster_id, clock=SystemClock())
            for cluster_id in (CLUSTER_ID, OTHER_CLUSTER_ID)
        )
        yield ProviderHarness(provider, other, patience=timedelta(seconds=30))
        end_all(root)


@pytest.mark.looptime(start=0)
class TestKubernetesProvider(ProviderContract, SurveyorContract):
    @pytest.fixture
    def harness(self) -> ProviderHarness:
        clock = LoopClock(EPOCH)
        cluster = FakeCluster(clock)
        provider, other = (
            KubernetesProvider(
                cluster,
                PodSettings(image="squid"),
                cluster_id=cluster_id,
                namespace=None,
                clock=clock,
            )
            for cluster_id in (CLUSTER_ID, OTHER_CLUSTER_ID)
        )
        return ProviderHarness(
            provider,
            other,
            spec=ProxySpec(provider=ProviderName.KUBERNETES),
            patience=timedelta(minutes=1),
            poll=timedelta(seconds=1),
        )

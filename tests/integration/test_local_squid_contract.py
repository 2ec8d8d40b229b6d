"""A local instance with a real squid keeps the promises of every provider."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

pytest.register_assert_rewrite("proxy_operator.testing.provider_contract")

from proxy_operator.adapters.providers.local.provider import (  # noqa: E402 - after the hook
    LocalProvider,
)
from proxy_operator.domain.proxy import (  # noqa: E402
    LocalBlock,
    LocalEngine,
    ProviderName,
    ProxySpec,
)
from proxy_operator.runtime.clock import SystemClock  # noqa: E402
from proxy_operator.testing.provider_contract import (  # noqa: E402
    CLUSTER_ID,
    OTHER_CLUSTER_ID,
    ProviderContract,
    ProviderHarness,
)
from tests.local_instances import end_all  # noqa: E402


class TestLocalSquid(ProviderContract):
    """Real processes, real time."""

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Iterator[ProviderHarness]:
        root = tmp_path / "instances"
        provider, other = (
            LocalProvider(root, bind="127.0.0.1", cluster_id=cluster_id, clock=SystemClock())
            for cluster_id in (CLUSTER_ID, OTHER_CLUSTER_ID)
        )
        yield ProviderHarness(
            provider,
            other,
            spec=ProxySpec(provider=ProviderName.LOCAL, local=LocalBlock(engine=LocalEngine.SQUID)),
            patience=timedelta(seconds=30),
        )
        end_all(root)

"""The operator with a provider that only pretends: `python -m bench.pretending run …`.

Takes the arguments of `proxy-operator`. Provider kubernetes makes no Pods but instances in
memory, each of which runs a second after its creation: what an operator itself costs, without
what its provider asks of the API server.
"""

import sys
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from proxy_operator.cli.main import main
from proxy_operator.runtime.clock import Clock
from proxy_operator.testing.fake_provider import FakeProvider


def pretend(*_: Any, cluster_id: str, clock: Clock, **__: Any) -> FakeProvider:  # noqa: ANN401
    """Stand in for the provider's constructor."""
    provider = FakeProvider(clock, cluster_id=cluster_id)
    provider.provision_delay = timedelta(seconds=1)
    return provider


if __name__ == "__main__":
    with patch("proxy_operator.app.cluster.KubernetesProvider", pretend):
        sys.exit(main())

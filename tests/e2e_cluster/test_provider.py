"""The contract of providers, kept by real Pods on a real node."""

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta

import msgspec
import pytest

pytest.register_assert_rewrite("proxy_operator.testing.provider_contract")

from proxy_operator.adapters.kube.client import KubeClient  # noqa: E402 - after the hook
from proxy_operator.adapters.kube.resources import ResourceClient  # noqa: E402
from proxy_operator.adapters.kube.sources import discover_access  # noqa: E402
from proxy_operator.adapters.providers.kubernetes.manifests import PodSettings  # noqa: E402
from proxy_operator.adapters.providers.kubernetes.provider import KubernetesProvider  # noqa: E402
from proxy_operator.app.options import OPTIONS  # noqa: E402
from proxy_operator.domain.proxy import ProviderName, ProxySpec  # noqa: E402
from proxy_operator.provisioning.contract import CreateRequest  # noqa: E402
from proxy_operator.runtime.clock import SystemClock  # noqa: E402
from proxy_operator.testing.provider_contract import (  # noqa: E402
    CLUSTER_ID,
    OTHER_CLUSTER_ID,
    ProviderContract,
    ProviderHarness,
    SurveyorContract,
)
from tests.e2e_cluster.kube import PROXY_API, Kube  # noqa: E402

SQUID_IMAGE = next(one.default or "" for one in OPTIONS if one.name == "squid-image")


@dataclass
class OwnedHarness(ProviderHarness):
    """Makes a Proxy for each request: Pods of a Proxy that does not exist are collected."""

    kube: Kube = field(kw_only=True)
    namespace: str = field(kw_only=True)
    _names: dict[str, str] = field(default_factory=dict)

    def request(self, *, cluster_id: str = CLUSTER_ID, uid: str = "") -> CreateRequest:
        uid = uid or self._new_proxy()
        request = super().request(cluster_id=cluster_id, uid=uid)
        return msgspec.structs.replace(
            request, namespace=self.namespace, proxy_name=self._names[uid]
        )

    def _new_proxy(self) -> str:
        # External: an operator that sees it makes no instance for it.
        spec = {"mode": "External", "endpoint": {"host": "192.0.2.1", "port": 3128}}
        name = f"p{len(self._names)}"
        made = self.kube.create(
            f"{PROXY_API}/namespaces/{self.namespace}/proxies",
            {
                "apiVersion": "crawl.example.com/v1alpha1",
                "kind": "Proxy",
                "metadata": {"name": name},
                "spec": spec,
            },
        )
        uid: str = made["metadata"]["uid"]
        self._names[uid] = name
        return uid


@pytest.mark.usefixtures("proxy_kind")
class TestKubernetesProvider(ProviderContract, SurveyorContract):
    @pytest.fixture
    async def harness(self, kube: Kube) -> AsyncIterator[ProviderHarness]:
        access = discover_access(kube.cluster.kubeconfig, None, os.environ, SystemClock())
        with kube.namespace("provider") as namespace:
            async with KubeClient(access) as client:
                provider, other = (
                    KubernetesProvider(
                        ResourceClient(client),
                        PodSettings(image=SQUID_IMAGE),
                        cluster_id=cluster_id,
                        namespace=namespace,
                        clock=SystemClock(),
                    )
                    for cluster_id in (CLUSTER_ID, OTHER_CLUSTER_ID)
                )
                yield OwnedHarness(
                    provider,
                    other,
                    spec=ProxySpec(provider=ProviderName.KUBERNETES),
                    patience=timedelta(seconds=60),
                    poll=timedelta(milliseconds=200),
                    kube=kube,
                    namespace=namespace,
                )

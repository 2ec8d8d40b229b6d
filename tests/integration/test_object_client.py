"""The contract of the object port, on a real kube-apiserver."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from proxy_operator.adapters.admission.validate import Admission
from proxy_operator.adapters.kube.client import KubeClient
from proxy_operator.adapters.kube.object_client import KubeObjectClient
from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.errors import UnavailableError
from proxy_operator.runtime.objects import ObjectClient
from proxy_operator.testing.object_client_contract import WAIT_SECONDS, ObjectClientContract
from tests.cluster.control_plane import ControlPlane
from tests.integration.access import connected, make_namespace

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/proxies.crawl.example.com"


class TestKube(ObjectClientContract):
    @pytest.fixture
    async def kube(self, proxy_api: ControlPlane) -> AsyncIterator[KubeClient]:
        self.plane = proxy_api
        async with connected(proxy_api) as client:
            yield client

    @pytest.fixture
    def client(self, kube: KubeClient) -> ObjectClient:
        return KubeObjectClient(kube, Admission())

    @pytest.fixture
    async def namespace(self, kube: KubeClient) -> str:
        return await make_namespace(kube, "contract")

    async def forget_history(self, client: ObjectClient, namespace: str) -> None:
        # A changed CRD is served from a new cache, which begins at the present version.
        status, crd = self.plane.api.send("GET", CRD)
        assert status == 200, crd
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["description"] = uuid.uuid4().hex
        status, answer = self.plane.api.send("PUT", CRD, crd)
        assert status == 200, answer
        async with asyncio.timeout(WAIT_SECONDS):
            await _until_watches_are_served(client)


async def _until_watches_are_served(client: ObjectClient) -> None:
    while True:
        listed = await client.list(Proxy)
        try:
            async with aclosing(client.watch(Proxy, listed.resource_version)) as stream:
                await anext(stream)
        except UnavailableError:
            await asyncio.sleep(0.1)
        else:
            return

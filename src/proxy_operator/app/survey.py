"""What instances there are, this operator's and others', beside a running operator.

The one rule: nothing is changed, and no lock is taken.
"""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from proxy_operator.app.settings import Settings
from proxy_operator.domain.proxy import ProviderName
from proxy_operator.provisioning.contract import Surveyor
from proxy_operator.provisioning.errors import ProviderError
from proxy_operator.runtime.clock import Clock, SystemClock


class Survey(NamedTuple):
    """The id that marks our own instances, and who sees those of each provider."""

    cluster_id: str
    surveyors: Mapping[str, Surveyor]
    unusable: Mapping[str, ProviderError]
    """Providers that were asked for and cannot be asked, and what is missing."""


@asynccontextmanager
async def open_survey(settings: Settings) -> AsyncIterator[Survey]:
    """Open the providers of a home. DataDirError, ClusterConfigError.

    SettingError when the cluster's id is not given and cannot be read.
    """
    clock = SystemClock()
    opening = _data_dir if settings.standalone else _cluster
    async with opening(settings, clock) as own:
        from proxy_operator.app.clouds import CloudProviders  # noqa: PLC0415 - slow to import

        clouds = CloudProviders(settings.providers, own.cluster_id, clock)
        try:
            yield _with_clouds(own, clouds.surveyors)
        finally:
            await clouds.close()


def _with_clouds(own: Survey, makers: Mapping[str, Callable[[], Surveyor]]) -> Survey:
    surveyors, unusable = {**own.surveyors}, {**own.unusable}
    for name, make in makers.items():
        try:
            surveyors[name] = make()
        except ProviderError as err:
            unusable[name] = err
    return Survey(own.cluster_id, surveyors, unusable)


@asynccontextmanager
async def _data_dir(settings: Settings, clock: Clock) -> AsyncIterator[Survey]:
    from proxy_operator.adapters.embedded.data_dir import DataDir  # noqa: PLC0415 - this home only
    from proxy_operator.adapters.embedded.database import Database  # noqa: PLC0415
    from proxy_operator.adapters.providers.local.provider import LocalProvider  # noqa: PLC0415
    from proxy_operator.app.standalone import INSTANCES  # noqa: PLC0415

    directory = DataDir(settings.data_dir)
    directory.prepare(create=False)
    database = Database(directory.store_path)
    await database.open(create=False)
    try:
        cluster_id = settings.cluster_id or await database.cluster_id()
        local = LocalProvider(
            directory.path / INSTANCES,
            bind=settings.providers.local_bind,
            cluster_id=cluster_id,
            clock=clock,
        )
        yield Survey(cluster_id, {ProviderName.LOCAL: local}, {})
    finally:
        await database.close()


@asynccontextmanager
async def _cluster(settings: Settings, clock: Clock) -> AsyncIterator[Survey]:
    from proxy_operator.adapters.kube.client import KubeClient  # noqa: PLC0415 - this home only
    from proxy_operator.adapters.kube.resources import ResourceClient  # noqa: PLC0415
    from proxy_operator.adapters.kube.sources import discover_access  # noqa: PLC0415
    from proxy_operator.adapters.providers.kubernetes.manifests import PodSettings  # noqa: PLC0415
    from proxy_operator.adapters.providers.kubernetes.provider import (  # noqa: PLC0415
        KubernetesProvider,
    )
    from proxy_operator.app.cluster import own_id  # noqa: PLC0415

    address = settings.home
    access = discover_access(address.kubeconfig, address.context, os.environ, clock)
    async with KubeClient(access) as client:
        cluster_id = settings.cluster_id or await own_id(ResourceClient(client))
        pods = KubernetesProvider(
            ResourceClient(client),
            PodSettings(image=settings.providers.squid_image),
            cluster_id=cluster_id,
            namespace=None,
            clock=clock,
        )
        yield Survey(cluster_id, {ProviderName.KUBERNETES: pods}, {})

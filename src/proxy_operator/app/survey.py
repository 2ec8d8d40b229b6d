"""What instances there are, this operator's and others', beside a running operator.

The one rule: nothing is changed, and no lock is taken.
"""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from proxy_operator.app.settings import HomeAddress
from proxy_operator.domain.proxy import ProviderName
from proxy_operator.provisioning.contract import Surveyor
from proxy_operator.runtime.clock import SystemClock

# Nothing is made here, so where it would listen and what it would run does not matter.
_NOWHERE: Final = "127.0.0.1"
_NOTHING: Final = ""


class Survey(NamedTuple):
    """The id that marks our own instances, and who sees those of each provider."""

    cluster_id: str
    surveyors: Mapping[str, Surveyor]


def open_survey(
    address: HomeAddress, cluster_id: str | None
) -> AbstractAsyncContextManager[Survey]:
    """Open the providers of a home; `cluster_id` is that of the home unless given.

    DataDirError, ClusterConfigError, SettingError when the id cannot be read.
    """
    if address.is_cluster:
        return _survey_cluster(address, cluster_id)
    return _survey_data_dir(address.data_dir, cluster_id)


@asynccontextmanager
async def _survey_data_dir(path: Path, cluster_id: str | None) -> AsyncIterator[Survey]:
    from proxy_operator.adapters.embedded.data_dir import DataDir  # noqa: PLC0415 - this home only
    from proxy_operator.adapters.embedded.database import Database  # noqa: PLC0415
    from proxy_operator.adapters.providers.local.provider import LocalProvider  # noqa: PLC0415
    from proxy_operator.app.standalone import INSTANCES  # noqa: PLC0415

    directory = DataDir(path)
    directory.prepare(create=False)
    database = Database(directory.store_path)
    await database.open(create=False)
    try:
        own_id = cluster_id or await database.cluster_id()
        local = LocalProvider(
            directory.path / INSTANCES,
            bind=_NOWHERE,
            cluster_id=own_id,
            clock=SystemClock(),
        )
        yield Survey(own_id, {ProviderName.LOCAL: local})
    finally:
        await database.close()


@asynccontextmanager
async def _survey_cluster(address: HomeAddress, cluster_id: str | None) -> AsyncIterator[Survey]:
    from proxy_operator.adapters.kube.client import KubeClient  # noqa: PLC0415 - this home only
    from proxy_operator.adapters.kube.resources import ResourceClient  # noqa: PLC0415
    from proxy_operator.adapters.kube.sources import discover_access  # noqa: PLC0415
    from proxy_operator.adapters.providers.kubernetes.manifests import PodSettings  # noqa: PLC0415
    from proxy_operator.adapters.providers.kubernetes.provider import (  # noqa: PLC0415
        KubernetesProvider,
    )
    from proxy_operator.app.cluster import own_id  # noqa: PLC0415

    access = discover_access(address.kubeconfig, address.context, os.environ, SystemClock())
    async with KubeClient(access) as client:
        found = cluster_id or await own_id(client)
        pods = KubernetesProvider(
            ResourceClient(client),
            PodSettings(image=_NOTHING),
            cluster_id=found,
            namespace=None,
            clock=SystemClock(),
        )
        yield Survey(found, {ProviderName.KUBERNETES: pods})

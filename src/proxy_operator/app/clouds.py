"""The cloud providers of an operator, in either home; their libraries are extras.

The rule: a cloud that the settings do not name is never asked anything, whatever credentials this
machine has.
"""

from collections.abc import Callable, Mapping

from proxy_operator.adapters.providers.gcp.api import ComputeApi
from proxy_operator.adapters.providers.gcp.google_session import GoogleSession
from proxy_operator.adapters.providers.gcp.provider import GcpProvider
from proxy_operator.app.settings import ProviderSettings
from proxy_operator.domain.proxy import ProviderName
from proxy_operator.provisioning.contract import Provider, Surveyor
from proxy_operator.provisioning.errors import NotConfiguredError
from proxy_operator.runtime.clock import Clock


class CloudProviders:
    """Makes the cloud providers that are asked for, and closes their connections."""

    def __init__(self, settings: ProviderSettings, cluster_id: str, clock: Clock) -> None:
        self._settings = settings
        self._cluster_id = cluster_id
        self._clock = clock
        self._sessions: list[GoogleSession] = []

    @property
    def makers(self) -> Mapping[str, Callable[[], Provider]]:
        """What a home adds to its own providers."""
        return {ProviderName.GCP: self._gcp}

    @property
    def surveyors(self) -> Mapping[str, Callable[[], Surveyor]]:
        """What makes those who see the instances at each cloud that the settings name."""
        return {} if self._settings.gcp_project is None else {ProviderName.GCP: self._gcp}

    async def close(self) -> None:
        """Let go of all connections."""
        for session in self._sessions:
            await session.close()

    def _gcp(self) -> GcpProvider:
        if self._settings.gcp_project is None:
            raise NotConfiguredError(
                "provider gcp needs a project: set --gcp-project (PROXY_OPERATOR_GCP_PROJECT)"
            )
        session = GoogleSession(self._settings.gcp_endpoint)
        self._sessions.append(session)
        api = ComputeApi(session, self._settings.gcp_project)
        return GcpProvider(api, cluster_id=self._cluster_id, clock=self._clock)

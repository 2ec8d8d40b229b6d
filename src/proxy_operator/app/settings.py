"""Settings: what flags, variables and defaults come to, checked, in types.

Nothing here touches disk or network.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from proxy_operator.adapters.web.bind import Bind
from proxy_operator.app.given import Given, SettingError, named, read
from proxy_operator.app.options import options_of
from proxy_operator.domain.allow_list import AllowedHost
from proxy_operator.provisioning.targets import AllowedTarget
from proxy_operator.runtime.election import Timing


@dataclass(frozen=True, kw_only=True)
class HomeAddress:
    """Where objects live: in a data directory, or in the cluster that is named."""

    data_dir: Path
    kubeconfig: Path | None = None
    context: str | None = None

    @property
    def is_cluster(self) -> bool:
        """A kubeconfig or a context was given."""
        return self.kubeconfig is not None or self.context is not None

    def __str__(self) -> str:
        if not self.is_cluster:
            return str(self.data_dir)
        return f"context {self.context}" if self.context else f"{self.kubeconfig}"


@dataclass(frozen=True, kw_only=True)
class ReconcileSettings:
    """How the Proxy reconciler paces itself."""

    workers: int
    provisioning_poll: timedelta
    deletion_poll: timedelta
    drift_poll: timedelta
    quota_retry: timedelta
    requeue_now: timedelta
    appear_deadline: timedelta


@dataclass(frozen=True, kw_only=True)
class ProviderSettings:
    """What the providers are told."""

    local_bind: str
    allow_targets: tuple[AllowedTarget, ...]
    squid_image: str
    gcp_project: str | None
    """None: the provider gcp is not to be had."""
    gcp_endpoint: str
    max_instances: int | None
    max_creates_per_minute: int | None


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """A home in a Kubernetes cluster, and who of several operators acts there."""

    kubeconfig: Path | None
    context: str | None
    leader_namespace: str | None
    lease_duration: timedelta
    renew_deadline: timedelta
    retry_period: timedelta


@dataclass(frozen=True, kw_only=True)
class HealthSettings:
    """The health engine."""

    probe_workers: int
    url: str | None
    allow_endpoints: tuple[AllowedHost, ...]
    allow_urls: tuple[AllowedHost, ...]
    ca_file: Path | None


@dataclass(frozen=True, kw_only=True)
class DiscoverySettings:
    """The discovery API and its leases."""

    bind: Bind
    token_file: Path | None
    token: str | None = field(repr=False)
    """From DISCOVERY_TOKEN; the file wins over it. None with no file: no authentication."""
    allow_unauthenticated: bool
    max_lease_ttl: timedelta
    cooldown_window: timedelta


@dataclass(frozen=True, kw_only=True)
class GcSettings:
    """Orphan garbage collection."""

    interval: timedelta
    min_age: timedelta
    dry_run: bool
    allow_namespaced: bool


@dataclass(frozen=True, kw_only=True)
class EndpointSettings:
    """Where the operator tells about itself."""

    metrics_bind: Bind
    health_probe_bind: Bind


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """What is logged and how."""

    level: str
    format: str
    """auto, console or json."""


@dataclass(frozen=True, kw_only=True)
class SessionSettings:
    """A run with a beginning and an end: apply at the start, delete at the end."""

    manifests: tuple[Path, ...]
    down_on_exit: bool


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything an operator process is told."""

    standalone: bool
    data_dir: Path
    watch_namespace: str | None
    """None is every namespace."""
    cluster_id: str | None
    """None: the home's own id."""
    reconcile: ReconcileSettings
    providers: ProviderSettings
    cluster: ClusterSettings
    health: HealthSettings
    discovery: DiscoverySettings
    gc: GcSettings
    endpoints: EndpointSettings
    log: LogSettings
    session: SessionSettings

    @property
    def home(self) -> HomeAddress:
        """Where the objects of this operator live."""
        cluster = self.cluster
        return HomeAddress(
            data_dir=self.data_dir, kubeconfig=cluster.kubeconfig, context=cluster.context
        )

    @property
    def is_owner_hidden(self) -> bool:
        """An instance with our cluster id may be that of a Proxy in a namespace not looked at."""
        return self.watch_namespace is not None and not self.gc.allow_namespaced


_GROUPS: Final = {
    "reconcile": ReconcileSettings,
    "providers": ProviderSettings,
    "cluster": ClusterSettings,
    "health": HealthSettings,
    "discovery": DiscoverySettings,
    "gc": GcSettings,
    "endpoints": EndpointSettings,
    "log": LogSettings,
    "session": SessionSettings,
}


def load_settings(given: Given, environ: Mapping[str, str], *, command: str = "run") -> Settings:
    """Make the settings of an operator process.

    `command` other than run offers a part of run's flags; variables and defaults stand in for the
    others. SettingError.
    """
    is_run = command == "run"
    values = _read_all(given, environ, is_standalone=None if is_run else True)
    groups: dict[str, dict[str, Any]] = {name: {} for name in _GROUPS}
    top: dict[str, Any] = {}
    for place, value in values.items():
        group, dot, member = place.partition(".")
        (groups[group] if dot else top)[member or group] = value
    made: dict[str, Any] = {name: cls(**groups[name]) for name, cls in _GROUPS.items()}
    if not is_run:
        top["standalone"] = made["cluster"].kubeconfig is None and made["cluster"].context is None
    settings = Settings(**top, **made)
    _check_home(settings)
    if is_run:
        _check(settings)
    return settings


def _read_all(
    given: Given, environ: Mapping[str, str], *, is_standalone: bool | None
) -> dict[str, Any]:
    """Return the value of every option of run; the home decides about some defaults."""
    options = options_of("run")
    if is_standalone is None:
        (standalone,) = (o for o in options if o.place == "standalone")
        is_standalone = read(standalone, given, environ)
    values = {}
    for option in options:
        if option.cluster_default is not None and not is_standalone:
            option = replace(option, default=option.cluster_default)  # noqa: PLW2901 - the same one
        values[option.place] = read(option, given, environ)
    return values


def _check_home(settings: Settings) -> None:
    if settings.standalone and settings.home.is_cluster:
        raise SettingError(
            f"{named('standalone')} keeps objects on this machine: drop it, or"
            f" {named('cluster.kubeconfig')} and {named('cluster.context')}"
        )
    try:
        leader_timing(settings)
    except ValueError as err:
        raise SettingError(f"{named('cluster.lease_duration')}: {err}") from err


def leader_timing(settings: Settings) -> Timing:
    """Return how long leadership lasts. ValueError when the spans do not fit together."""
    cluster = settings.cluster
    return Timing(cluster.lease_duration, cluster.renew_deadline, cluster.retry_period)


def _check(settings: Settings) -> None:
    if settings.gc.allow_namespaced and not (settings.standalone or settings.cluster_id):
        raise SettingError(
            f"{named('gc.allow_namespaced')} needs {named('cluster_id')}, one that no other"
            " operator has: their instances would count as orphans"
        )
    namespaced_gc = settings.gc.allow_namespaced and settings.watch_namespace is None
    if namespaced_gc:
        raise SettingError(
            f"{named('gc.allow_namespaced')} says nothing without {named('watch_namespace')}"
        )

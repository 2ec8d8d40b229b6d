"""Settings: what flags, variables and defaults come to, checked, in types.

A flag wins over its variable, a variable over the default; an empty variable counts as absent.
Nothing here touches disk or network.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from proxy_operator.adapters.web.bind import Bind
from proxy_operator.app.options import OPTIONS, PREFIX, Option, options_of
from proxy_operator.domain.allow_list import AllowedHost
from proxy_operator.provisioning.targets import AllowedTarget
from proxy_operator.runtime.election import Timing

DEBUG_VARIABLE: Final = f"{PREFIX}DEBUG"
# A Service called proxy-operator puts these into every Pod of its namespace (Kubernetes,
# "Accessing the Service", environment variables).
_OF_A_SERVICE: Final = re.compile(
    rf"{PREFIX}(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)"
)

Given = Mapping[str, str | bool | Sequence[str] | None]
"""What stood on the command line, by `Option.parameter`; None is absent."""


class SettingError(ValueError):
    """A setting is wrong. The message is one sentence naming flag and variable."""


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


def label(option: Option) -> str:
    """Name an option for people: `--gc-interval (PROXY_OPERATOR_GC_INTERVAL)`."""
    if option.flag and option.variable:
        return f"{option.flag} ({option.variable})"
    return option.flag or option.variable


def read_options(command: str, given: Given, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the value of every option of a command, by `Option.place`. SettingError."""
    return {option.place: _read(option, given, environ) for option in options_of(command)}


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
        is_standalone = _read(standalone, given, environ)
    values = {}
    for option in options:
        if option.cluster_default is not None and not is_standalone:
            option = replace(option, default=option.cluster_default)  # noqa: PLW2901 - the same one
        values[option.place] = _read(option, given, environ)
    return values


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each variable that looks like ours and is none."""
    known = {option.variable for option in OPTIONS} | {DEBUG_VARIABLE}
    found = [
        name
        for name in sorted(environ)
        if name.startswith(PREFIX) and name not in known and not _OF_A_SERVICE.fullmatch(name)
    ]
    return [f"the variable {name} is unknown and ignored{_meant(name, known)}" for name in found]


def _meant(name: str, known: Iterable[str]) -> str:
    import difflib  # noqa: PLC0415 - most command lines need it never

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    return f": did you mean {near[0]}?" if near else ""


def _read(option: Option, given: Given, environ: Mapping[str, str]) -> Any:  # noqa: ANN401 - the kind decides
    flag = given.get(option.parameter)
    if isinstance(flag, bool):
        return flag
    texts: Sequence[str]
    variable = environ.get(option.variable, "") if option.variable else ""
    if flag is not None and flag != []:
        texts = [flag] if isinstance(flag, str) else list(flag)
    elif variable:
        texts = variable.split(",") if option.is_repeatable else [variable]
    else:
        texts = [] if option.default is None else [option.default]
    try:
        parsed = tuple(option.kind.parse(text) for text in texts)
    except ValueError as err:
        raise SettingError(f"{label(option)}: {err}") from err
    if option.is_repeatable:
        return parsed
    return parsed[-1] if parsed else None


def _named(place: str) -> str:
    return label(next(option for option in options_of("run") if option.place == place))


def _check_home(settings: Settings) -> None:
    if settings.standalone and settings.home.is_cluster:
        raise SettingError(
            f"{_named('standalone')} keeps objects on this machine: drop it, or"
            f" {_named('cluster.kubeconfig')} and {_named('cluster.context')}"
        )
    try:
        leader_timing(settings)
    except ValueError as err:
        raise SettingError(f"{_named('cluster.lease_duration')}: {err}") from err


def leader_timing(settings: Settings) -> Timing:
    """Return how long leadership lasts. ValueError when the spans do not fit together."""
    cluster = settings.cluster
    return Timing(cluster.lease_duration, cluster.renew_deadline, cluster.retry_period)


def _check(settings: Settings) -> None:
    if settings.gc.allow_namespaced and not (settings.standalone or settings.cluster_id):
        raise SettingError(
            f"{_named('gc.allow_namespaced')} needs {_named('cluster_id')}, one that no other"
            " operator has: their instances would count as orphans"
        )
    namespaced_gc = settings.gc.allow_namespaced and settings.watch_namespace is None
    if namespaced_gc:
        raise SettingError(
            f"{_named('gc.allow_namespaced')} says nothing without {_named('watch_namespace')}"
        )

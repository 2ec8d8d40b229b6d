"""Settings: what flags, variables and defaults come to, checked, in types.

A flag wins over its variable, a variable over the default; an empty variable counts as absent.
Nothing here touches disk or network.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from proxy_operator.adapters.web.bind import Bind
from proxy_operator.app.options import OPTIONS, PREFIX, Option, options_of
from proxy_operator.provisioning.targets import AllowedTarget

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
class LocalSettings:
    """The local provider."""

    bind: str
    allow_targets: tuple[AllowedTarget, ...]


@dataclass(frozen=True, kw_only=True)
class HealthSettings:
    """The health engine."""

    probe_workers: int
    url: str | None
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
    """None: the data directory's own id."""
    reconcile: ReconcileSettings
    local: LocalSettings
    health: HealthSettings
    discovery: DiscoverySettings
    gc: GcSettings
    endpoints: EndpointSettings
    log: LogSettings
    session: SessionSettings


_GROUPS: Final = {
    "reconcile": ReconcileSettings,
    "local": LocalSettings,
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
    values = {option.place: _read(option, given, environ) for option in options_of("run")}
    groups: dict[str, dict[str, Any]] = {name: {} for name in _GROUPS}
    top: dict[str, Any] = {}
    for place, value in values.items():
        group, dot, member = place.partition(".")
        (groups[group] if dot else top)[member or group] = value
    made: dict[str, Any] = {name: cls(**groups[name]) for name, cls in _GROUPS.items()}
    if command != "run":
        return Settings(**{**top, "standalone": True}, **made)
    settings = Settings(**top, **made)
    _check(settings)
    return settings


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


def _check(settings: Settings) -> None:
    if not settings.standalone:
        raise SettingError(f"this version runs standalone only: add {_named('standalone')}")
    discovery = settings.discovery
    has_token = bool(discovery.token_file or discovery.token)
    if not (has_token or discovery.bind.is_loopback or discovery.allow_unauthenticated):
        raise SettingError(
            f"{_named('discovery.bind')}: {discovery.bind} can be reached from other machines"
            f" and there is no token: set {_named('discovery.token')} or"
            f" {_named('discovery.token_file')}, or add {_named('discovery.allow_unauthenticated')}"
        )
    namespaced_gc = settings.gc.allow_namespaced and settings.watch_namespace is None
    if namespaced_gc:
        raise SettingError(
            f"{_named('gc.allow_namespaced')} says nothing without {_named('watch_namespace')}"
        )


def options_table() -> str:
    """Return the documentation of every option: Markdown, one table for each section."""
    sections: dict[str, list[Option]] = {}
    for option in OPTIONS:
        sections.setdefault(option.section, []).append(option)
    parts = [_INTRODUCTION]
    for title, rows in sections.items():
        parts.append(f"## {title}\n")
        parts.append("| Option | Variable | Value | Default | Meaning | Commands |")
        parts.append("|---|---|---|---|---|---|")
        parts.extend(_table_row(option) for option in rows)
        parts.append("")
    return "\n".join(parts)


def _table_row(option: Option) -> str:
    flags = f"`{option.flag}`" if option.flag else "none"
    if option.short:
        flags += f", `{option.short}`"
    default = f"`{option.default}`" if option.default is not None else option.default_note or "none"
    cells = (
        flags,
        f"`{option.variable}`" if option.variable else "none",
        "`true` or `false`" if option.is_switch else f"`{option.kind.metavar}`",
        default,
        option.help + (" May be repeated." if option.is_repeatable else ""),
        ", ".join(f"`{command}`" for command in option.commands),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


_INTRODUCTION: Final = """# Options

Every option of every command. A flag wins over its environment variable, and the variable over
the default; an empty variable counts as absent. An option that may be repeated takes several
values from its variable, separated by commas. A switch is turned off by `--no-` and its name.
Durations are numbers with units: `250ms`, `90s`, `5m`, `1h30m`. Addresses to listen on are
`host:port`, `[::1]:port`, or `:port` for every address of the machine; port 0 lets the system
choose.

What a command acts on when it deletes has no variable: it is said on the command line.
`PROXY_OPERATOR_DEBUG=1` lets an unexpected error show its traceback.
"""

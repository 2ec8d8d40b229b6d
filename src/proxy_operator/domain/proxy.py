"""The `Proxy` object: wire type and domain type in one.

The CRD document is generated from these types, so a constraint written here is the one both
homes enforce. Rules that need more than one field are the `RULES` at the end, in core CEL.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from proxy_operator.domain.condition import Condition
from proxy_operator.domain.duration import PATTERN as DURATION_PATTERN
from proxy_operator.domain.meta import API_VERSION, ObjectMeta

KIND: Final = "Proxy"

Port = Annotated[int, Meta(ge=1, le=65535, extra_json_schema={"format": "int32"})]
Count = Annotated[int, Meta(ge=0, le=1_000_000, extra_json_schema={"format": "int32"})]
Threshold = Annotated[int, Meta(ge=1, le=100, extra_json_schema={"format": "int32"})]
Duration = Annotated[str, Meta(pattern=DURATION_PATTERN, max_length=32)]
ObjectName = Annotated[
    str, Meta(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", min_length=1, max_length=253)
]
Text = Annotated[str, Meta(min_length=1, max_length=1024)]
HttpUrl = Annotated[str, Meta(pattern=r"^https?://[^\s/?#]+", max_length=2048)]


class _Wire(msgspec.Struct, kw_only=True, frozen=True, rename="camel", omit_defaults=True):
    """Shape shared by all parts of a spec: camelCase on the wire, immutable here."""


class Mode(StrEnum):
    """Who makes the instance behind a proxy."""

    MANAGED = "Managed"
    EXTERNAL = "External"


class ProviderName(StrEnum):
    """Where managed instances come from."""

    LOCAL = "local"
    KUBERNETES = "kubernetes"
    GCP = "gcp"


class Scheme(StrEnum):
    """How clients speak to the proxy itself."""

    HTTP = "http"
    HTTPS = "https"


class LocalEngine(StrEnum):
    """The program that a local instance runs."""

    PROXY_PY = "proxy-py"
    SQUID = "squid"


class Phase(StrEnum):
    """A summary for people. No code branches on it."""

    PENDING = "Pending"
    PROVISIONING = "Provisioning"
    READY = "Ready"
    UNHEALTHY = "Unhealthy"
    FAILED = "Failed"
    DELETING = "Deleting"


class Endpoint(_Wire, frozen=True):
    """Address of a proxy somebody else runs."""

    host: Annotated[
        str,
        Meta(
            description="DNS name, IPv4 address, or IPv6 address without brackets.",
            pattern=r"^([A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9_.-]+)?)$",
            min_length=1,
            max_length=253,
        ),
    ]
    port: Port


class SecretRef(_Wire, frozen=True):
    """Names a Secret in the Proxy's namespace."""

    name: ObjectName


class SecretKeyRef(_Wire, frozen=True):
    """Names one key of a Secret in the Proxy's namespace."""

    name: ObjectName
    key: Annotated[str, Meta(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)] = "user-data"


class CloudInit(_Wire, frozen=True):
    """User data for an instance's first boot. The Secret needs the cloud-init label."""

    secret_ref: SecretKeyRef


class GcpBlock(_Wire, frozen=True):
    """Shape of a Compute Engine instance."""

    zone: Text | None = None
    fallback_zones: Annotated[tuple[Text, ...], Meta(max_length=16)] = ()
    machine_type: Text | None = None
    image: Text | None = None
    network: Text | None = None
    subnetwork: Text | None = None
    disk_size_gb: (
        Annotated[int, Meta(ge=1, le=65536, extra_json_schema={"format": "int32"})] | None
    ) = msgspec.field(default=None, name="diskSizeGB")
    spot: bool = False
    network_tags: Annotated[tuple[Text, ...], Meta(max_length=64)] = ()
    service_account: Text | None = None


class Resources(_Wire, frozen=True):
    """Requests and limits of a Pod's container, as Kubernetes writes quantities."""

    requests: dict[str, str | int] = {}
    limits: dict[str, str | int] = {}


class Toleration(_Wire, frozen=True):
    """A taint the Pod accepts."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: Annotated[int, Meta(extra_json_schema={"format": "int64"})] | None = None


class KubernetesBlock(_Wire, frozen=True):
    """Shape of a squid Pod."""

    image: Text | None = None
    resources: Resources | None = None
    node_selector: dict[str, str] = {}
    tolerations: Annotated[tuple[Toleration, ...], Meta(max_length=32)] = ()


class LocalBlock(_Wire, frozen=True):
    """Shape of a proxy process on this machine."""

    engine: LocalEngine = LocalEngine.PROXY_PY
    egress_address: (
        Annotated[
            str,
            Meta(
                description="Source address of the proxy's connections; must exist here.",
                max_length=64,
            ),
        ]
        | None
    ) = None


class HealthCheck(_Wire, frozen=True):
    """How, how often and against what a proxy is probed."""

    url: HttpUrl | None = None
    expected_status: (
        Annotated[int, Meta(ge=100, le=599, extra_json_schema={"format": "int32"})] | None
    ) = None
    interval: Duration = "30s"
    timeout: Duration = "5s"
    success_threshold: Threshold = 1
    failure_threshold: Threshold = 3


class ProxySpec(_Wire, frozen=True):
    """What the user wants."""

    mode: Mode = Mode.MANAGED
    provider: ProviderName | None = None
    endpoint: Endpoint | None = None
    port: Annotated[Port, Meta(description="Where a managed proxy listens.")] | None = None
    scheme: Scheme = Scheme.HTTP
    credentials_secret_ref: SecretRef | None = None
    cloud_init: CloudInit | None = None
    gcp: GcpBlock | None = None
    kubernetes: KubernetesBlock | None = None
    local: LocalBlock | None = None
    attributes: Annotated[
        dict[str, Annotated[str, Meta(max_length=1024)]],
        Meta(description="What lease selectors match.", max_length=64),
    ] = {}
    max_leases: (
        Annotated[Count, Meta(description="Most leases at once; absent is no cap, 0 is drained.")]
        | None
    ) = None
    health_check: HealthCheck = HealthCheck()


class ProxyStatus(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """What the operator saw. Only the proxy reconciler writes it."""

    phase: Phase | None = None
    ip: str | None = None
    port: Port | None = None
    provider_id: str | None = msgspec.field(default=None, name="providerID")
    latency_millis: Annotated[int, Meta(ge=0, extra_json_schema={"format": "int64"})] | None = None
    last_health_check_at: datetime | None = msgspec.field(default=None, name="lastHealthCheckTime")
    observed_generation: Annotated[int, Meta(ge=0, extra_json_schema={"format": "int64"})] = 0
    conditions: tuple[Condition, ...] = ()


class Proxy(msgspec.Struct, kw_only=True, rename="camel"):
    """One proxy. Objects from a store are shared: change a `draft`, never the original."""

    metadata: ObjectMeta
    spec: ProxySpec
    status: ProxyStatus = msgspec.field(default_factory=ProxyStatus)
    api_version: str = API_VERSION
    kind: str = KIND

    def draft(self) -> "Proxy":
        """Return a copy whose status may be changed freely (its parts are immutable)."""
        return Proxy(
            metadata=self.metadata, spec=self.spec, status=msgspec.structs.replace(self.status)
        )

    @property
    def is_managed(self) -> bool:
        """An instance is made for this proxy."""
        return self.spec.mode is Mode.MANAGED

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port that clients connect to, or None while not known."""
        if self.spec.endpoint is not None:
            return self.spec.endpoint.host, self.spec.endpoint.port
        if self.status.ip and self.status.port:
            return self.status.ip, self.status.port
        return None


class Rule(NamedTuple):
    """A CEL validation on one node of the schema (`x-kubernetes-validations`)."""

    path: str
    """Dotted path from the object's root, `spec` or `spec.healthCheck`."""
    rule: str
    message: str
    field_path: str | None = None
    """Field the message is about, relative to `path`, as `.provider`."""

    def as_schema(self) -> dict[str, Any]:
        """Return the entry of `x-kubernetes-validations`."""
        entry: dict[str, Any] = {"rule": self.rule, "message": self.message}
        if self.field_path:
            entry["fieldPath"] = self.field_path
        return entry


def _only_with(block: str) -> Rule:
    return Rule(
        "spec",
        f"!has(self.{block}) || (has(self.provider) && self.provider == '{block}')",
        f"{block} may be set only when provider is {block}",
        f".{block}",
    )


RULES: Final = (
    Rule("spec", "self.mode == oldSelf.mode", "mode is immutable", ".mode"),
    Rule(
        "spec",
        "has(self.provider) == has(oldSelf.provider)"
        " && (!has(self.provider) || self.provider == oldSelf.provider)",
        "provider is immutable",
        ".provider",
    ),
    Rule(
        "spec",
        "self.mode != 'Managed' || has(self.provider)",
        "provider is required when mode is Managed",
        ".provider",
    ),
    Rule(
        "spec",
        "self.mode != 'External' || !has(self.provider)",
        "provider is forbidden when mode is External",
        ".provider",
    ),
    Rule(
        "spec",
        "self.mode != 'External' || has(self.endpoint)",
        "endpoint is required when mode is External",
        ".endpoint",
    ),
    Rule(
        "spec",
        "self.mode != 'Managed' || !has(self.endpoint)",
        "endpoint is forbidden when mode is Managed",
        ".endpoint",
    ),
    Rule(
        "spec",
        "self.mode != 'External' || !has(self.port)",
        "port is forbidden when mode is External: set endpoint.port",
        ".port",
    ),
    Rule(
        "spec",
        "self.mode != 'External' || !has(self.cloudInit)",
        "cloudInit is forbidden when mode is External",
        ".cloudInit",
    ),
    _only_with("gcp"),
    _only_with("kubernetes"),
    _only_with("local"),
    Rule(
        "spec.attributes",
        "self.all(k, k.size() <= 253 && k.matches('^[A-Za-z0-9._/-]+$'))",
        "attribute keys are 1 to 253 characters of A-Z a-z 0-9 . _ / -",
    ),
    Rule(
        "spec.healthCheck",
        "duration(self.interval) >= duration('1s')",
        "interval must be at least 1s",
        ".interval",
    ),
    Rule(
        "spec.healthCheck",
        "duration(self.timeout) >= duration('100ms')",
        "timeout must be at least 100ms",
        ".timeout",
    ),
    Rule(
        "spec.healthCheck",
        "duration(self.timeout) <= duration(self.interval)",
        "timeout must not be longer than interval",
        ".timeout",
    ),
)

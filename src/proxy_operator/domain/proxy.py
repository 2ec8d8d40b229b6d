"""The `Proxy` object: wire type and domain type in one.

The CRD document is generated from these types, so a constraint written here is the one both
homes enforce. Kinds of field are in `domain.fields`, rules over several fields in `domain.rules`.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from proxy_operator.domain.condition import Condition
from proxy_operator.domain.fields import (
    Attributes,
    Count,
    DiskSize,
    Duration,
    GcpName,
    Host,
    HttpStatus,
    HttpUrl,
    Int64,
    IpAddress,
    LabelValue,
    NaturalInt64,
    NodeSelector,
    ObjectName,
    Port,
    Quantities,
    SecretKey,
    TaintKey,
    Text,
    Threshold,
)
from proxy_operator.domain.meta import API_VERSION, ObjectMeta

KIND: Final = "Proxy"


class _Wire(
    msgspec.Struct, kw_only=True, frozen=True, gc=False, rename="camel", omit_defaults=True
):
    """Shape shared by all parts of a spec: camelCase on the wire, immutable here.

    Values only, so no cycle can pass through: with gc=False here and in metadata and status, a
    collection of garbage does not visit the whole fleet.
    """


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
        Host,
        Meta(description="Where the proxy listens."),
    ]
    port: Annotated[Port, Meta(description="TCP port.")]


class SecretRef(_Wire, frozen=True):
    """Names a Secret in the Proxy's namespace."""

    name: Annotated[ObjectName, Meta(description="Name of the Secret.")]


class SecretKeyRef(_Wire, frozen=True):
    """Names one key of a Secret in the Proxy's namespace."""

    name: Annotated[ObjectName, Meta(description="Name of the Secret.")]
    key: Annotated[SecretKey, Meta(description="Key in the Secret's data.")] = "user-data"


class CloudInit(_Wire, frozen=True):
    """User data for an instance's first boot."""

    secret_ref: Annotated[
        SecretKeyRef,
        Meta(description="The Secret with the user data; it needs the cloud-init label."),
    ]


class GcpBlock(_Wire, frozen=True):
    """Shape of a Compute Engine instance."""

    zone: Annotated[
        GcpName | None, Meta(description="Needed: the first zone, such as europe-west4-a.")
    ] = None
    fallback_zones: Annotated[
        tuple[GcpName, ...],
        Meta(max_length=16, description="Zones to try, in order, when a zone has none left."),
    ] = ()
    machine_type: Annotated[
        Text | None, Meta(description="Needed: machine type, such as e2-micro.")
    ] = None
    image: Annotated[
        Text | None,
        Meta(description="Needed: image, projects/PROJECT/global/images/family/FAMILY."),
    ] = None
    network: Annotated[Text | None, Meta(description="Network by name or path.")] = None
    subnetwork: Annotated[Text | None, Meta(description="Subnetwork by name or path.")] = None
    disk_size_gb: Annotated[DiskSize | None, Meta(description="Size of the boot disk in GB.")] = (
        msgspec.field(default=None, name="diskSizeGB")
    )
    spot: Annotated[
        bool, Meta(description="Use cheaper capacity that may be taken back at any time.")
    ] = False
    network_tags: Annotated[
        tuple[GcpName, ...], Meta(max_length=64, description="Tags that firewall rules match.")
    ] = ()
    service_account: Annotated[
        Text | None, Meta(description="Service account of the instance; absent is none.")
    ] = None


class Resources(_Wire, frozen=True):
    """Requests and limits of a Pod's container, as Kubernetes writes quantities."""

    requests: Annotated[Quantities, Meta(description="What the scheduler sets aside.")] = {}
    limits: Annotated[Quantities, Meta(description="What the container may not exceed.")] = {}


class Toleration(_Wire, frozen=True):
    """A taint the Pod accepts."""

    key: Annotated[TaintKey | None, Meta(description="Key of the taint; empty is all.")] = None
    operator: Annotated[
        Literal["Equal", "Exists"] | None, Meta(description="How key and value are compared.")
    ] = None
    value: Annotated[LabelValue | None, Meta(description="Value of the taint, for Equal.")] = None
    effect: Annotated[
        Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None,
        Meta(description="Effect of the taint; absent is all."),
    ] = None
    toleration_seconds: Annotated[
        Int64 | None, Meta(description="How long a NoExecute taint is accepted; absent is forever.")
    ] = None


class KubernetesBlock(_Wire, frozen=True):
    """Shape of a squid Pod."""

    image: Annotated[Text | None, Meta(description="Container image with squid.")] = None
    resources: Annotated[
        Resources | None, Meta(description="Requests and limits of the container.")
    ] = None
    node_selector: NodeSelector = {}
    tolerations: Annotated[
        tuple[Toleration, ...], Meta(max_length=32, description="Taints the Pod accepts.")
    ] = ()


class LocalBlock(_Wire, frozen=True):
    """Shape of a proxy process on this machine."""

    engine: Annotated[LocalEngine, Meta(description="The program that runs.")] = (
        LocalEngine.PROXY_PY
    )
    egress_address: Annotated[
        IpAddress | None,
        Meta(description="Source address of the proxy's connections; must exist on this machine."),
    ] = None


class HealthCheck(_Wire, frozen=True):
    """How, how often and against what a proxy is probed."""

    url: Annotated[
        HttpUrl | None,
        Meta(
            description="What is fetched through the proxy; absent is the operator's --health-url."
        ),
    ] = None
    expected_status: Annotated[
        HttpStatus | None, Meta(description="The status that counts as success; absent is any 2xx.")
    ] = None
    interval: Annotated[Duration, Meta(description="Time between two probes, 1s to 24h.")] = "30s"
    timeout: Annotated[
        Duration, Meta(description="Time a probe may take, from 100ms to the interval.")
    ] = "5s"
    success_threshold: Annotated[
        Threshold, Meta(description="Successes in a row that make an unhealthy proxy healthy.")
    ] = 1
    failure_threshold: Annotated[
        Threshold, Meta(description="Failures in a row that make a healthy proxy unhealthy.")
    ] = 3


class ProxySpec(_Wire, frozen=True):
    """What the user wants."""

    mode: Annotated[
        Mode, Meta(description="Managed: a provider makes an instance. External: it exists.")
    ] = Mode.MANAGED
    provider: Annotated[
        ProviderName | None, Meta(description="Where the instance comes from; for Managed only.")
    ] = None
    endpoint: Annotated[
        Endpoint | None, Meta(description="Address of the proxy; for External only.")
    ] = None
    port: Annotated[
        Port | None,
        Meta(description="Where a managed proxy listens; absent is 3128, for local any free port."),
    ] = None
    scheme: Annotated[Scheme, Meta(description="How clients speak to the proxy itself.")] = (
        Scheme.HTTP
    )
    credentials_secret_ref: Annotated[
        SecretRef | None,
        Meta(
            description="A Secret with the keys username and password, and the credentials label."
        ),
    ] = None
    cloud_init: Annotated[
        CloudInit | None, Meta(description="User data for an instance's first boot.")
    ] = None
    gcp: Annotated[GcpBlock | None, Meta(description="Settings of provider gcp.")] = None
    kubernetes: Annotated[
        KubernetesBlock | None, Meta(description="Settings of provider kubernetes.")
    ] = None
    local: Annotated[LocalBlock | None, Meta(description="Settings of provider local.")] = None
    attributes: Attributes = {}
    max_leases: Annotated[
        Count | None, Meta(description="Most leases at once; absent is no cap, 0 is drained.")
    ] = None
    health_check: HealthCheck = HealthCheck()


class ProxyStatus(msgspec.Struct, kw_only=True, gc=False, rename="camel", omit_defaults=True):
    """What the operator saw. Only the proxy reconciler writes it."""

    phase: Annotated[Phase | None, Meta(description="A summary for people.")] = None
    ip: Annotated[str | None, Meta(description="Address clients connect to.")] = None
    port: Annotated[Port | None, Meta(description="Port clients connect to.")] = None
    provider_id: Annotated[
        str | None, Meta(description="The instance, in its provider's words.")
    ] = msgspec.field(default=None, name="providerID")
    latency_millis: Annotated[
        NaturalInt64 | None, Meta(description="Time to first byte of the last good probe.")
    ] = None
    last_health_check_at: Annotated[
        datetime | None, Meta(description="When the probe behind the verdict ended.")
    ] = msgspec.field(default=None, name="lastHealthCheckTime")
    observed_generation: Annotated[
        NaturalInt64, Meta(description="The generation of the spec that this status answers.")
    ] = 0
    conditions: Annotated[
        tuple[Condition, ...], Meta(description="Provisioned and Healthy, each with its reason.")
    ] = ()


class Proxy(msgspec.Struct, kw_only=True, gc=False, rename="camel"):
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

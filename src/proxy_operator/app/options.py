"""Every option of every command, in one table: flag, variable, kind, default, meaning.

The parser, the documentation and the settings are all made from this table, so an option is
added here and nowhere else. A default is text and goes through the same parser as a flag.
"""

from dataclasses import dataclass
from typing import Final

from proxy_operator.app.values import (
    ADDRESS,
    BIND,
    CLUSTER_ID,
    COUNT,
    DURATION,
    GCP_PROJECT,
    HOSTS,
    NAMESPACE,
    PAIR,
    PATH,
    SELECTOR,
    SWITCH,
    TARGET,
    TEXT,
    TOKEN,
    URL,
    Kind,
    choice,
)

PREFIX: Final = "PROXY_OPERATOR_"

OBJECT_COMMANDS: Final = ("apply", "get", "describe", "delete")
HOME_COMMANDS: Final = (*OBJECT_COMMANDS, "instances")
API_COMMANDS: Final = ("lease", "release", "report")


@dataclass(frozen=True, kw_only=True)
class Option:
    """One row. Flag and variable follow from the name unless the row says otherwise."""

    name: str
    kind: Kind
    help: str
    section: str
    commands: tuple[str, ...] = ("run",)
    default: str | None = None
    default_note: str = ""
    """What stands in when there is no default, for people."""
    cluster_default: str | None = None
    """The default in a cluster, where it is another."""
    field: str = ""
    """Dotted place in `Settings`; the name with underscores unless given."""
    short: str = ""
    is_repeatable: bool = False
    has_flag: bool = True
    has_variable: bool = True
    own_variable: str = ""

    @property
    def flag(self) -> str:
        """`--probe-workers`, or nothing when there is only a variable."""
        return f"--{self.name}" if self.has_flag else ""

    @property
    def variable(self) -> str:
        """`PROXY_OPERATOR_PROBE_WORKERS`, or nothing."""
        if not self.has_variable:
            return ""
        return self.own_variable or PREFIX + self.name.upper().replace("-", "_")

    @property
    def parameter(self) -> str:
        """Name of the option as an identifier."""
        return self.name.replace("-", "_")

    @property
    def place(self) -> str:
        """Where the value goes."""
        return self.field or self.parameter

    @property
    def is_switch(self) -> bool:
        """It takes no value on the command line."""
        return self.kind is SWITCH

    @property
    def shown_default(self) -> str:
        """Return the default for people; empty when there is none."""
        default = self.default_note or self.default or ""
        if self.cluster_default is None:
            return default
        return f"{default}; {self.cluster_default} in a cluster"


_HOME = "Where objects live"
_RECONCILE = "Reconciling"
_HEALTH = "Health"
_DISCOVERY = "Discovery API"
_GC = "Orphan garbage collection"
_ENDPOINTS = "Metrics and health endpoints"
_LEADER = "Leader election in a cluster"
_PROVIDERS = "Providers"
_LOGGING = "Logging"
_SESSION = "One-off runs"
_SELECT = "What to show or change"
_CLIENT = "Lease commands"


def _interval(name: str, default: str, text: str, field: str) -> Option:
    return Option(
        name=name, kind=DURATION, default=default, help=text, section=_RECONCILE, field=field
    )


OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        name="standalone",
        kind=SWITCH,
        default="false",
        section=_HOME,
        help="Keep objects in the data directory of this machine.",
    ),
    Option(
        name="data-dir",
        kind=PATH,
        default="data",
        section=_HOME,
        commands=("run", "down", *HOME_COMMANDS),
        help="Directory of objects and of local instances.",
    ),
    Option(
        name="kubeconfig",
        kind=PATH,
        section=_HOME,
        commands=("run", "down", *HOME_COMMANDS),
        field="cluster.kubeconfig",
        default_note="KUBECONFIG, then the Pod's service account, then ~/.kube/config",
        help="File that says how to reach the cluster. Given, objects live in that cluster.",
    ),
    Option(
        name="context",
        kind=TEXT,
        section=_HOME,
        commands=("run", "down", *HOME_COMMANDS),
        field="cluster.context",
        default_note="the kubeconfig's current one",
        help="Context of the kubeconfig. Given, objects live in that cluster.",
    ),
    Option(
        name="namespace",
        kind=NAMESPACE,
        short="-n",
        section=_HOME,
        commands=(*OBJECT_COMMANDS, "lease"),
        default_note="the context's, or default; any, for lease",
        help="Namespace of the objects.",
    ),
    Option(
        name="watch-namespace",
        kind=NAMESPACE,
        default_note="all",
        section=_HOME,
        commands=("run", "down"),
        help="Reconcile the objects of this namespace only.",
    ),
    Option(
        name="cluster-id",
        kind=CLUSTER_ID,
        default_note="the data directory's own id; in a cluster the UID of kube-system",
        section=_HOME,
        commands=("run", "down", "instances"),
        help="Marks instances as this operator's; unique among all that share a provider.",
    ),
    Option(
        name="workers",
        kind=COUNT,
        default="3",
        section=_RECONCILE,
        field="reconcile.workers",
        help="Proxies reconciled at the same time.",
    ),
    _interval(
        "provisioning-poll",
        "5s",
        "How often an instance on its way is looked at.",
        "reconcile.provisioning_poll",
    ),
    Option(
        name="deletion-poll",
        kind=DURATION,
        default="5s",
        section=_RECONCILE,
        commands=("run", "down"),
        field="reconcile.deletion_poll",
        help="How often an instance on its way out is looked at.",
    ),
    _interval(
        "drift-poll", "60s", "How often a running instance is looked at.", "reconcile.drift_poll"
    ),
    _interval(
        "quota-retry",
        "5m",
        "Wait after a quota was reached or the surroundings were wrong.",
        "reconcile.quota_retry",
    ),
    _interval(
        "requeue-now",
        "1s",
        "Wait before the next step of a change in several steps.",
        "reconcile.requeue_now",
    ),
    _interval(
        "appear-deadline",
        "3m",
        "How long an accepted instance may take to appear.",
        "reconcile.appear_deadline",
    ),
    Option(
        name="local-bind",
        kind=ADDRESS,
        default="127.0.0.1",
        section=_PROVIDERS,
        commands=("run", "down"),
        field="providers.local_bind",
        help="Address local proxies listen on; beyond loopback they must have credentials.",
    ),
    Option(
        name="allow-targets",
        kind=TARGET,
        section=_PROVIDERS,
        is_repeatable=True,
        field="providers.allow_targets",
        help="What managed proxies may reach although it is of this machine or link-local.",
    ),
    Option(
        name="squid-image",
        kind=TEXT,
        default="docker.io/ubuntu/squid:6.6-24.04_edge",
        section=_PROVIDERS,
        commands=("run", "down"),
        field="providers.squid_image",
        help="Image of squid Pods whose Proxy names none.",
    ),
    Option(
        name="gcp-project",
        kind=GCP_PROJECT,
        section=_PROVIDERS,
        commands=("run", "down", "instances"),
        field="providers.gcp_project",
        default_note="no provider gcp",
        help="Google Cloud project of Compute Engine instances; needs the extra gcp.",
    ),
    Option(
        name="gcp-endpoint",
        kind=URL,
        default="https://compute.googleapis.com",
        section=_PROVIDERS,
        commands=("run", "down", "instances"),
        field="providers.gcp_endpoint",
        help="The Compute Engine API; a plain http one gets no credentials.",
    ),
    Option(
        name="max-instances",
        kind=COUNT,
        default_note="no limit",
        section=_PROVIDERS,
        field="providers.max_instances",
        help="Most instances at each provider; further Proxies wait and say so.",
    ),
    Option(
        name="max-creates-per-minute",
        kind=COUNT,
        default_note="no limit",
        section=_PROVIDERS,
        field="providers.max_creates_per_minute",
        help="Most instances made within a minute at each provider; further Proxies wait.",
    ),
    Option(
        name="probe-workers",
        kind=COUNT,
        default="100",
        section=_HEALTH,
        field="health.probe_workers",
        help="Probes under way at the same time.",
    ),
    Option(
        name="health-url",
        kind=URL,
        default_note="the operator's own /healthz, for local proxies",
        section=_HEALTH,
        field="health.url",
        help="What to fetch through a proxy whose healthCheck names no url.",
    ),
    Option(
        name="allow-endpoints",
        kind=HOSTS,
        section=_HEALTH,
        is_repeatable=True,
        default_note="everything",
        field="health.allow_endpoints",
        help="What endpoints of External proxies may be; others are neither probed nor leased.",
    ),
    Option(
        name="allow-health-urls",
        kind=HOSTS,
        section=_HEALTH,
        is_repeatable=True,
        default_note="everything",
        field="health.allow_urls",
        help="Whose URLs a Proxy's healthCheck.url may name.",
    ),
    Option(
        name="probe-ca-file",
        kind=PATH,
        default_note="the system's authorities alone",
        section=_HEALTH,
        field="health.ca_file",
        help="PEM file of further authorities that probes trust.",
    ),
    Option(
        name="discovery-bind",
        kind=BIND,
        default="127.0.0.1:8090",
        cluster_default=":8090",
        section=_DISCOVERY,
        field="discovery.bind",
        help="Where the discovery API listens; :8090 is every address.",
    ),
    Option(
        name="discovery-token-file",
        kind=PATH,
        section=_DISCOVERY,
        field="discovery.token_file",
        help="File with the bearer token, read again when it changes; wins over DISCOVERY_TOKEN.",
    ),
    Option(
        name="discovery-token",
        kind=TOKEN,
        section=_DISCOVERY,
        commands=("run", *API_COMMANDS),
        field="discovery.token",
        has_flag=False,
        own_variable="DISCOVERY_TOKEN",
        default_note="no authentication",
        help="The bearer token. There is no flag: other users can see arguments.",
    ),
    Option(
        name="allow-unauthenticated",
        kind=SWITCH,
        default="false",
        section=_DISCOVERY,
        field="discovery.allow_unauthenticated",
        help="Serve without a token beyond loopback.",
    ),
    Option(
        name="max-lease-ttl",
        kind=DURATION,
        default="1h",
        section=_DISCOVERY,
        field="discovery.max_lease_ttl",
        help="Longest lease a client may ask for.",
    ),
    Option(
        name="cooldown-window",
        kind=DURATION,
        default="15m",
        section=_DISCOVERY,
        field="discovery.cooldown_window",
        help="How long a reported proxy is not offered for the target again.",
    ),
    Option(
        name="gc-interval",
        kind=DURATION,
        default="10m",
        section=_GC,
        field="gc.interval",
        help="How often instances without a Proxy are looked for.",
    ),
    Option(
        name="gc-min-age",
        kind=DURATION,
        default="10m",
        section=_GC,
        field="gc.min_age",
        help="Younger instances are left alone.",
    ),
    Option(
        name="gc-dry-run",
        kind=SWITCH,
        default="false",
        section=_GC,
        field="gc.dry_run",
        help="Only say what would be deleted.",
    ),
    Option(
        name="gc-allow-namespaced",
        kind=SWITCH,
        default="false",
        section=_GC,
        field="gc.allow_namespaced",
        commands=("run", "down"),
        help="Collect even though --watch-namespace hides the Proxies of other namespaces.",
    ),
    Option(
        name="metrics-bind",
        kind=BIND,
        default="127.0.0.1:8080",
        cluster_default=":8080",
        section=_ENDPOINTS,
        field="endpoints.metrics_bind",
        help="Where /metrics is served.",
    ),
    Option(
        name="health-probe-bind",
        kind=BIND,
        default="127.0.0.1:8081",
        cluster_default=":8081",
        section=_ENDPOINTS,
        field="endpoints.health_probe_bind",
        help="Where the operator's own /healthz and /readyz are served.",
    ),
    Option(
        name="leader-namespace",
        kind=NAMESPACE,
        default_note="the Pod's own; outside a Pod proxy-operator",
        section=_LEADER,
        commands=("run", "down"),
        field="cluster.leader_namespace",
        help="Where the Lease proxy-operator is: of all that share it, one operator acts.",
    ),
    Option(
        name="leader-lease-duration",
        kind=DURATION,
        default="15s",
        section=_LEADER,
        commands=("run", "down"),
        field="cluster.lease_duration",
        help="How long others wait for a leader that no longer renews; whole seconds.",
    ),
    Option(
        name="leader-renew-deadline",
        kind=DURATION,
        default="10s",
        section=_LEADER,
        commands=("run", "down"),
        field="cluster.renew_deadline",
        help="How long a leader may act after it renewed last.",
    ),
    Option(
        name="leader-retry-period",
        kind=DURATION,
        default="2s",
        section=_LEADER,
        commands=("run", "down"),
        field="cluster.retry_period",
        help="How often a leader renews and the others look.",
    ),
    Option(
        name="log-level",
        kind=choice("debug", "info", "warning", "error"),
        default="info",
        section=_LOGGING,
        commands=("run", "down"),
        field="log.level",
        help="The least serious records to write.",
    ),
    Option(
        name="log-format",
        kind=choice("auto", "console", "json"),
        default="auto",
        section=_LOGGING,
        commands=("run", "down"),
        field="log.format",
        help="auto is console on a terminal, else json.",
    ),
    Option(
        name="apply",
        kind=PATH,
        section=_SESSION,
        is_repeatable=True,
        field="session.manifests",
        help="Apply these manifests after the start and report until all proxies are Ready.",
    ),
    Option(
        name="down-on-exit",
        kind=SWITCH,
        default="false",
        section=_SESSION,
        field="session.down_on_exit",
        help="On the first Ctrl-C or SIGTERM delete every Proxy, wait for its instance, then stop.",
    ),
    Option(
        name="filename",
        kind=PATH,
        short="-f",
        section=_SELECT,
        commands=("apply",),
        is_repeatable=True,
        help="Manifests: a file, a directory, or - for standard input.",
    ),
    Option(
        name="filename",
        kind=PATH,
        short="-f",
        section=_SELECT,
        commands=("delete",),
        is_repeatable=True,
        has_variable=False,
        help="Delete what these manifests name: a file, a directory, or - for standard input.",
    ),
    Option(
        name="all-namespaces",
        kind=SWITCH,
        short="-A",
        default="false",
        section=_SELECT,
        commands=("get",),
        help="Show the objects of every namespace.",
    ),
    Option(
        name="selector",
        kind=SELECTOR,
        short="-l",
        section=_SELECT,
        commands=("get",),
        help="Show only objects with all these labels.",
    ),
    Option(
        name="output",
        kind=choice("table", "wide", "json", "yaml", "name"),
        short="-o",
        default="table",
        section=_SELECT,
        commands=("get",),
        help="How to print.",
    ),
    Option(
        name="foreign",
        kind=SWITCH,
        default="false",
        section=_SELECT,
        commands=("instances",),
        has_variable=False,
        help="Show only instances that are not this operator's.",
    ),
    Option(
        name="watch",
        kind=SWITCH,
        short="-w",
        default="false",
        section=_SELECT,
        commands=("get",),
        help="After the list, print every change until interrupted.",
    ),
    Option(
        name="wait",
        kind=SWITCH,
        default="true",
        section=_SELECT,
        commands=("delete",),
        help="Return only when the objects, and so their instances, are gone.",
    ),
    Option(
        name="timeout",
        kind=DURATION,
        default_note="for ever",
        section=_SELECT,
        commands=("delete", "down"),
        help="Stop waiting, with an error, after so long.",
    ),
    Option(
        name="api",
        kind=URL,
        default="http://127.0.0.1:8090",
        section=_CLIENT,
        commands=API_COMMANDS,
        help="The discovery API.",
    ),
    Option(
        name="token-file",
        kind=PATH,
        section=_CLIENT,
        commands=API_COMMANDS,
        help="File with the bearer token; wins over DISCOVERY_TOKEN.",
    ),
    Option(
        name="attr",
        kind=PAIR,
        section=_CLIENT,
        commands=("lease",),
        is_repeatable=True,
        help="An attribute the proxy must have.",
    ),
    Option(
        name="target",
        kind=TEXT,
        section=_CLIENT,
        commands=("lease", "report"),
        help="What is to be fetched: a proxy reported for one target stays usable for others.",
    ),
    Option(
        name="ttl",
        kind=DURATION,
        section=_CLIENT,
        commands=("lease",),
        default_note="the server's, 5m",
        help="How long the lease lasts.",
    ),
    Option(
        name="output",
        kind=choice("url", "json"),
        short="-o",
        default="url",
        section=_CLIENT,
        commands=("lease",),
        own_variable=f"{PREFIX}LEASE_OUTPUT",
        help="What to print: the proxy's URL, or the whole answer.",
    ),
)


def options_of(command: str) -> tuple[Option, ...]:
    """Return the rows of one command, in the order of the table."""
    return tuple(option for option in OPTIONS if command in option.commands)

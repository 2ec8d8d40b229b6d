"""What a crawler may ask, and what it gets: the API's words, independent of HTTP.

The answers are wire types: absent values are null, times are RFC 3339 in UTC. Only `Grant` carries
credentials; nothing that lists ever does.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta

from proxy_operator.domain.proxy import Phase, Scheme


class InvalidRequestError(Exception):
    """The request breaks a rule: tell the client this sentence, change nothing."""


class UnknownLeaseError(Exception):
    """No such lease, active or remembered: the client must acquire a new one."""


class DiscoverySettings(msgspec.Struct, kw_only=True, frozen=True):
    """Bounds on what a client may ask."""

    default_ttl: timedelta = timedelta(minutes=5)
    max_ttl: timedelta = timedelta(hours=1)


class ListQuery(msgspec.Struct, kw_only=True, frozen=True):
    """Which proxies to list."""

    attributes: tuple[tuple[str, str], ...] = ()
    """Pairs that must all be equal."""
    is_healthy: bool | None = None
    namespace: str | None = None
    limit: int | None = None
    """None is all of them in one answer."""
    token: str | None = None
    """The `continue` of an earlier answer to the same question."""


class AcquireRequest(msgspec.Struct, kw_only=True, frozen=True):
    """What kind of proxy, for how long, to fetch what."""

    selector: Mapping[str, str] = {}
    ttl_seconds: int | None = None
    target: str = ""
    namespace: str | None = None


class _Answer(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """Shape shared by all answers: camelCase on the wire."""


class ProxyRow(_Answer, frozen=True):
    """One proxy of the fleet, without its credentials."""

    name: str
    namespace: str
    scheme: Scheme
    host: Annotated[
        str | None, Meta(description="Null until the address is known. IPv6 without brackets.")
    ]
    port: int | None
    attributes: dict[str, str]
    phase: Annotated[Phase, Meta(description="A summary for people; select by `healthy`.")]
    healthy: Annotated[bool, Meta(description="Probes succeed, address known, not deleting.")]
    latency_millis: Annotated[int | None, Meta(description="Time to first byte at the last probe.")]
    active_leases: int
    max_leases: Annotated[int | None, Meta(description="Null is no cap; 0 is drained.")]


class ProxyPage(_Answer, frozen=True):
    """Proxies in order of namespace, then name."""

    proxies: list[ProxyRow]
    count: Annotated[int, Meta(description="How many proxies are in this answer.")]
    token: Annotated[
        str | None,
        Meta(description="Pass as `continue` for the next page; null on the last one."),
    ] = msgspec.field(name="continue")


class LeasedProxy(_Answer, frozen=True):
    """The proxy that was granted, with all that is needed to use it."""

    name: str
    namespace: str
    url: Annotated[
        str,
        Meta(description="Ready to use: credentials percent-encoded, IPv6 in brackets."),
    ]
    scheme: Scheme
    host: str
    port: int
    username: str | None
    password: str | None
    attributes: dict[str, str]
    latency_millis: int | None

    def __repr__(self) -> str:
        return f"LeasedProxy({self.namespace}/{self.name})"


class Grant(_Answer, frozen=True):
    """A lease and its proxy."""

    id: str = msgspec.field(name="leaseID")
    proxy: LeasedProxy
    expires_at: datetime
    ttl_seconds: int


class ProxyName(_Answer, frozen=True):
    """Which proxy."""

    namespace: str
    name: str


class LeaseRow(_Answer, frozen=True):
    """A lease as others may see it: no credentials."""

    id: str = msgspec.field(name="leaseID")
    proxy: ProxyName
    target: Annotated[str | None, Meta(description="What the client said it would fetch.")]
    expires_at: datetime
    ttl_seconds: int


class LeasePage(_Answer, frozen=True):
    """Active leases, soonest to expire first."""

    leases: list[LeaseRow]
    count: Annotated[int, Meta(description="How many leases are in this answer.")]

"""What the health engine needs from outside."""

from datetime import timedelta
from typing import NamedTuple, Protocol

import msgspec

from proxy_operator.domain.allow_list import Network
from proxy_operator.domain.event import EventKind
from proxy_operator.domain.health import ProbeError
from proxy_operator.domain.proxy import Proxy, Scheme
from proxy_operator.domain.secret import Credentials
from proxy_operator.runtime.objects import ObjectKey


class TargetRequest(msgspec.Struct, kw_only=True, frozen=True):
    """What is fetched, and what counts as success."""

    url: str
    expected_status: int | None
    """None accepts any 2xx."""
    timeout: timedelta
    """Bound on the whole probe."""


class ProbeRequest(TargetRequest, kw_only=True, frozen=True):
    """One probe: fetch `url` through the proxy at `host:port`."""

    host: str
    port: int
    scheme: Scheme
    credentials: Credentials | None
    networks: tuple[Network, ...] | None = None
    """Where the address that is connected to must lie; None is anywhere."""


class ProbePhases(msgspec.Struct, kw_only=True, frozen=True):
    """Seconds spent in each phase; None for phases not reached or not needed."""

    connect: float | None = None
    """Name resolution, TCP and, with an https proxy, TLS to the proxy."""
    proxy_connect: float | None = None
    """The CONNECT exchange, for https targets."""
    tls: float | None = None
    """TLS with an https target, inside the tunnel."""
    first_byte: float | None = None
    """From the request to the first byte of the final answer."""


class ProbeOutcome(msgspec.Struct, kw_only=True, frozen=True):
    """What came of a probe."""

    error: ProbeError | None
    """None is success."""
    detail: str = ""
    """One clause for people, without times, ids or credentials."""
    latency: timedelta
    """From the start to the first byte of the answer (to the failure, when failed)."""
    phases: ProbePhases = ProbePhases()
    connect_status: int | None = None
    """The status that the proxy refused CONNECT with, if that was the failure."""


class LocalProbeError(Exception):
    """The probe could not be made for a reason on this machine, such as no free descriptor.

    It says nothing about the proxy: the caller judges nothing, logs it, and probes again later.
    """


class Prober(Protocol):
    """Fetches a target through a proxy."""

    async def probe(self, request: ProbeRequest) -> ProbeOutcome:
        """Run one probe on a fresh connection, within `request.timeout`.

        Whatever proxy or target do is an outcome. Raises only LocalProbeError.
        """

    async def probe_directly(self, request: TargetRequest) -> ProbeOutcome:
        """Fetch the target from here, without a proxy; the same promises as of `probe`."""


class CredentialsReader(Protocol):
    """Finds what a proxy asks of its clients."""

    def credentials_for(self, proxy: Proxy) -> Credentials | None:
        """Return credentials, or None when the proxy needs none.

        ValueError says why they are missing or unusable; the caller then sends nothing.
        """


class EventRecorder(Protocol):
    """Tells people what happened to an object."""

    def record(self, proxy: Proxy, event: EventKind, message: str) -> None:
        """Queue an Event; never blocks, never raises. Equal ones are aggregated."""


class Recorder(Protocol):
    """Measures of probing."""

    def probed(self, key: ObjectKey, outcome: ProbeOutcome, lag: timedelta) -> None:
        """Count a probe; `lag` is how late it started."""

    def forgot(self, key: ObjectKey) -> None:
        """Drop what was kept for this proxy."""


class Ports(NamedTuple):
    """All that the engine reaches the world through."""

    prober: Prober
    credentials: CredentialsReader
    recorder: Recorder
    events: EventRecorder

"""The order of a probe: connect, tunnel, ask, judge the answer, all within one deadline.

One path for every mix of proxy and target scheme, and for a target without a proxy; only the layers
of the channel differ.
"""

import asyncio
import ssl
from datetime import timedelta
from enum import StrEnum

from proxy_operator.adapters.probing.channel import Channel, TlsChannel
from proxy_operator.adapters.probing.connect import Address, Resolver, connect
from proxy_operator.adapters.probing.fault import FailedProbeError, is_local, tls_fault
from proxy_operator.adapters.probing.head import Head, read_head
from proxy_operator.adapters.probing.target import (
    Target,
    connect_request,
    forwarded_request,
    own_request,
    parse_target,
)
from proxy_operator.domain.allow_list import is_within, refused_endpoint
from proxy_operator.domain.health import ProbeError
from proxy_operator.domain.proxy import Scheme
from proxy_operator.health.ports import (
    LocalProbeError,
    ProbeOutcome,
    ProbePhases,
    ProbeRequest,
    TargetRequest,
)
from proxy_operator.runtime.clock import Clock


class _Step(StrEnum):
    """What a probe is at, as the end of `took too long: ...`."""

    RESOLVE = "resolving the {peer}'s name"
    CONNECT = "connecting to the {peer}"
    PROXY_TLS = "the TLS handshake with the proxy"
    TUNNEL = "the proxy's answer to CONNECT"
    TARGET_TLS = "the TLS handshake with the target"
    ANSWER = "the answer"


class ProxyProber:
    """Probes on fresh connections, any number at a time."""

    def __init__(self, context: ssl.SSLContext, clock: Clock) -> None:
        """Take the one TLS context of all probes: `tls.probe_tls_context`."""
        self._context = context
        self._clock = clock
        self._resolver = Resolver()

    def close(self) -> None:
        """Let the resolver's threads end; no probe may be sent after."""
        self._resolver.close()

    async def probe(self, request: ProbeRequest) -> ProbeOutcome:
        return await _Probe(request, self._context, self._resolver, self._clock).run()

    async def probe_directly(self, request: TargetRequest) -> ProbeOutcome:
        return await _Probe(request, self._context, self._resolver, self._clock).run()


class _Probe:
    """One probe: what it has reached, and when. A request that names no proxy goes without."""

    def __init__(
        self, request: TargetRequest, context: ssl.SSLContext, resolver: Resolver, clock: Clock
    ) -> None:
        self._request = request
        self._proxy = request if isinstance(request, ProbeRequest) else None
        self._peer = "target" if self._proxy is None else "proxy"
        self._context = context
        self._resolver = resolver
        self._clock = clock
        self._started_at = self._phase_at = clock.monotonic()
        self._phases: dict[str, float] = {}
        self._step = _Step.RESOLVE

    async def run(self) -> ProbeOutcome:
        """Do it all. LocalProbeError when this machine is at fault."""
        try:
            async with asyncio.timeout(self._request.timeout.total_seconds()):
                head = await self._fetch(self._target())
            self._judge(head)
        except FailedProbeError as fault:
            return self._outcome(fault)
        except TimeoutError:
            error = ProbeError.DNS if self._step is _Step.RESOLVE else ProbeError.TIMEOUT
            return self._outcome(FailedProbeError(error, f"took too long: {self._at}"))
        except ssl.SSLError as err:
            return self._outcome(tls_fault(err, self._tls_peer()))
        except OSError as err:
            if is_local(err):
                raise LocalProbeError(err.strerror or "unknown fault") from err
            return self._outcome(self._hang_up())
        return self._outcome(None, head.began_at)

    def _target(self) -> Target:
        try:
            return parse_target(self._request.url)
        except ValueError as err:
            raise FailedProbeError(
                ProbeError.PROTOCOL, f"the target's URL is unusable: {err}"
            ) from err

    async def _fetch(self, target: Target) -> Head:
        proxy = self._proxy
        # Of the addresses just looked at, never of the name: it may lead elsewhere by now.
        addresses = await self._addresses(target)
        self._step = _Step.CONNECT
        connection = await connect(addresses, self._peer)
        try:
            if proxy is not None:
                return await self._fetch_through(proxy, connection, target)
            self._end_phase("connect")
            return await self._fetch_from(connection, target)
        finally:
            connection.close()

    async def _addresses(self, target: Target) -> list[Address]:
        proxy = self._proxy
        if proxy is None:
            return await self._resolver.resolve(target.host, target.port, self._peer)
        addresses = await self._resolver.resolve(proxy.host, proxy.port, self._peer)
        if proxy.networks is not None:
            addresses = [one for one in addresses if is_within(proxy.networks, one.host)]
        if not addresses:
            raise FailedProbeError(ProbeError.NOT_ALLOWED, refused_endpoint(proxy.host, proxy.port))
        return addresses

    async def _fetch_through(
        self, proxy: ProbeRequest, connection: Channel, target: Target
    ) -> Head:
        channel = connection
        if proxy.scheme is Scheme.HTTPS:
            channel = await self._wrap(channel, _Step.PROXY_TLS, _server_name(proxy.host))
        self._end_phase("connect")
        if not target.is_https:
            return await self._ask(channel, forwarded_request(target, proxy.credentials))
        early = await self._open_tunnel(channel, connect_request(target, proxy.credentials))
        return await self._fetch_from(channel, target, early)

    async def _fetch_from(self, channel: Channel, target: Target, early: bytes = b"") -> Head:
        """Ask the target at the other end of the channel; `early` is what it said already."""
        if target.is_https:
            name = _server_name(target.host)
            channel = await self._wrap(channel, _Step.TARGET_TLS, name, early)
            self._end_phase("tls")
        return await self._ask(channel, own_request(target))

    async def _open_tunnel(self, channel: Channel, request: bytes) -> bytes:
        """Return what the target said before it was asked anything."""
        self._step = _Step.TUNNEL
        await channel.send(request)
        head = await read_head(channel, self._peer, self._clock)
        if head.status == 407:
            raise self._auth_fault()
        if not 200 <= head.status < 300:
            raise FailedProbeError(
                ProbeError.STATUS,
                f"the proxy answered CONNECT with status {head.status}",
                connect_status=head.status,
            )
        self._end_phase("proxy_connect")
        return head.rest

    async def _wrap(
        self, channel: Channel, step: _Step, server_name: str, early: bytes = b""
    ) -> TlsChannel:
        self._step = step
        wrapped = TlsChannel(channel, self._context, server_name)
        await wrapped.handshake(early)
        return wrapped

    async def _ask(self, channel: Channel, request: bytes) -> Head:
        self._step = _Step.ANSWER
        await channel.send(request)
        head = await read_head(channel, self._peer, self._clock)
        self._phases["first_byte"] = head.began_at - self._phase_at
        return head

    def _judge(self, head: Head) -> None:
        # Before anything else: a proxy that wants other credentials is of no use to anybody,
        # whatever status the probe was told to expect.
        if head.status == 407 and self._proxy is not None:
            raise self._auth_fault()
        expected = self._request.expected_status
        if head.status == expected or (expected is None and 200 <= head.status < 300):
            return
        wanted = "2xx" if expected is None else str(expected)
        raise FailedProbeError(
            ProbeError.STATUS, f"the answer has status {head.status}, not {wanted}"
        )

    def _auth_fault(self) -> FailedProbeError:
        sent = self._proxy is not None and self._proxy.credentials is not None
        return FailedProbeError(
            ProbeError.AUTH,
            "the proxy did not accept the credentials (407)"
            if sent
            else "the proxy asks for credentials (407)",
        )

    def _hang_up(self) -> FailedProbeError:
        error = (
            ProbeError.TLS
            if self._step in {_Step.PROXY_TLS, _Step.TARGET_TLS}
            else ProbeError.PROTOCOL
        )
        return FailedProbeError(error, f"the connection broke during {self._at}")

    @property
    def _at(self) -> str:
        return self._step.value.format(peer=self._peer)

    def _tls_peer(self) -> str:
        return "proxy" if self._step in {_Step.PROXY_TLS, _Step.TUNNEL} else "target"

    def _end_phase(self, name: str) -> None:
        now = self._clock.monotonic()
        self._phases[name] = now - self._phase_at
        self._phase_at = now

    def _outcome(
        self, fault: FailedProbeError | None, ended_at: float | None = None
    ) -> ProbeOutcome:
        end = self._clock.monotonic() if ended_at is None else ended_at
        return ProbeOutcome(
            error=fault.error if fault else None,
            detail=fault.detail if fault else "",
            latency=timedelta(seconds=end - self._started_at),
            phases=ProbePhases(**self._phases),
            connect_status=fault.connect_status if fault else None,
        )


def _server_name(host: str) -> str:
    """Return the name that a certificate must be for: no zone, no root dot."""
    return host.partition("%")[0].rstrip(".")

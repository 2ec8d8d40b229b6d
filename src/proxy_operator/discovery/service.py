"""The discovery service: list, acquire, release, report, renew.

Every call is synchronous, so a decision and what it changes are one step of the loop.
"""

import logging
from datetime import timedelta
from typing import Final
from urllib.parse import quote

from proxy_operator.discovery.listing import is_leasable, select_page
from proxy_operator.discovery.model import (
    AcquireRequest,
    DiscoverySettings,
    Grant,
    InvalidRequestError,
    LeasedProxy,
    LeasePage,
    LeaseRow,
    ListQuery,
    ProxyName,
    ProxyPage,
    ProxyRow,
    UnknownLeaseError,
)
from proxy_operator.discovery.ports import CredentialsReader, LeaseStore, Recorder
from proxy_operator.domain.lease import Lease, NoMatch, ReportResult
from proxy_operator.domain.phase import compute_phase
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Credentials
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.store import Lister

logger = logging.getLogger(__name__)

MAX_UNUSABLE: Final = 16
"""Granted but unusable proxies that one request passes over before it gives up."""


class DiscoveryService:
    """What crawlers ask for, answered from memory."""

    def __init__(
        self,
        proxies: Lister[Proxy],
        leases: LeaseStore,
        credentials: CredentialsReader,
        recorder: Recorder,
        settings: DiscoverySettings,
    ) -> None:
        self._proxies = proxies
        self._leases = leases
        self._credentials = credentials
        self._recorder = recorder
        self._settings = settings

    def list_proxies(self, query: ListQuery) -> ProxyPage:
        """Return the proxies that match, in order. InvalidRequestError on a foreign token."""
        found, token = select_page(self._proxies.list(query.namespace), query, self._is_leasable)
        return ProxyPage(proxies=[self._row(p) for p in found], count=len(found), token=token)

    def acquire(self, request: AcquireRequest) -> Grant | NoMatch:
        """Lease the best proxy that matches. InvalidRequestError when the ttl is out of range."""
        ttl = self._ttl(request.ttl_seconds)
        unusable: dict[str, list[str]] = {}
        try:
            answer = self._first_usable(request, ttl, unusable)
        finally:
            for ids in unusable.values():
                for lease_id in ids:
                    self._leases.release(lease_id)
        self._recorder.lease_requested("granted" if isinstance(answer, Grant) else "no_match")
        return answer

    def refused(self) -> None:
        """Count a lease request that broke a rule."""
        self._recorder.lease_requested("invalid")

    def release(self, lease_id: str) -> None:
        """End a lease; unknown and ended ones are ignored."""
        self._leases.release(lease_id)

    def report(self, lease_id: str, result: ReportResult, target: str | None) -> None:
        """Note how a proxy did; in force before the next answer. UnknownLeaseError."""
        if not self._leases.report(lease_id, result, target or None):
            raise UnknownLeaseError(lease_id)

    def renew(self, lease_id: str, ttl_seconds: int | None) -> LeaseRow:
        """Let a lease end that many seconds from now. UnknownLeaseError, InvalidRequestError."""
        lease = self._leases.renew(lease_id, self._ttl(ttl_seconds))
        if lease is None:
            raise UnknownLeaseError(lease_id)
        return _lease_row(lease)

    def list_leases(self) -> LeasePage:
        """Return who holds what, soonest to expire first."""
        rows = [_lease_row(lease) for lease in self._leases.leases()]
        return LeasePage(leases=rows, count=len(rows))

    def _ttl(self, seconds: int | None) -> timedelta:
        if seconds is None:
            return self._settings.default_ttl
        longest = int(self._settings.max_ttl.total_seconds())
        if not 1 <= seconds <= longest:
            raise InvalidRequestError(f"ttlSeconds: must be from 1 to {longest}")
        return timedelta(seconds=seconds)

    def _first_usable(
        self, request: AcquireRequest, ttl: timedelta, unusable: dict[str, list[str]]
    ) -> Grant | NoMatch:
        # A lease on a proxy that turns out to be unusable is kept until the request is answered:
        # it makes the store prefer the others. Usually there is none, for the store is told of a
        # lost Secret in the same step of the loop.
        for _ in range(MAX_UNUSABLE):
            lease = self._leases.acquire(
                selector=request.selector,
                namespace=request.namespace,
                target=request.target,
                ttl=ttl,
            )
            if isinstance(lease, NoMatch):
                return _as_unhealthy(lease, len(unusable)) if unusable else lease
            proxy = self._proxies.get(ObjectKey(lease.namespace, lease.name))
            grant = self._grant(lease, proxy)
            if grant is not None:
                return grant
            unusable.setdefault(lease.uid, []).append(lease.id)
        return NoMatch(
            considered=len(unusable),
            unhealthy=len(unusable),
            at_capacity=0,
            in_cooldown=0,
            retry_after_seconds=None,
        )

    def _grant(self, lease: Lease, proxy: Proxy | None) -> Grant | None:
        if proxy is None or proxy.metadata.uid != lease.uid or proxy.address is None:
            return None
        try:
            credentials = self._credentials.credentials_for(proxy)
        except ValueError as err:
            logger.warning(
                "a healthy proxy cannot be leased",
                extra={"proxy": f"{lease.namespace}/{lease.name}", "reason": str(err)},
            )
            return None
        host, port = proxy.address
        return Grant(
            id=lease.id,
            proxy=LeasedProxy(
                name=lease.name,
                namespace=lease.namespace,
                url=proxy_url(proxy.spec.scheme, host, port, credentials),
                scheme=proxy.spec.scheme,
                host=host,
                port=port,
                username=credentials.username if credentials else None,
                password=credentials.password if credentials else None,
                attributes=proxy.spec.attributes,
                latency_millis=proxy.status.latency_millis,
            ),
            expires_at=lease.expires_at,
            ttl_seconds=lease.ttl_seconds,
        )

    def _is_leasable(self, proxy: Proxy) -> bool:
        """Tell whether a lease could be granted: healthy, and its credentials are at hand."""
        if not is_leasable(proxy):
            return False
        try:
            self._credentials.credentials_for(proxy)
        except ValueError:
            return False
        return True

    def _row(self, proxy: Proxy) -> ProxyRow:
        host, port = proxy.address or (None, None)
        meta, spec, status = proxy.metadata, proxy.spec, proxy.status
        return ProxyRow(
            name=meta.name,
            namespace=meta.namespace,
            scheme=spec.scheme,
            host=host,
            port=port,
            attributes=spec.attributes,
            phase=status.phase or compute_phase(proxy),
            healthy=self._is_leasable(proxy),
            latency_millis=status.latency_millis,
            active_leases=self._leases.active_leases(meta.uid),
            max_leases=spec.max_leases,
        )


def proxy_url(scheme: str, host: str, port: int, credentials: Credentials | None) -> str:
    """Return the URL to give to an HTTP client.

    Credentials are percent-encoded (RFC 3986 section 3.2.1), IPv6 is in brackets, its zone after
    `%25` (RFC 6874).
    """
    where = f"[{host.replace('%', '%25')}]" if ":" in host else host
    if credentials is None:
        return f"{scheme}://{where}:{port}"
    who = f"{quote(credentials.username, safe='')}:{quote(credentials.password, safe='')}"
    return f"{scheme}://{who}@{where}:{port}"


def _as_unhealthy(found: NoMatch, unusable: int) -> NoMatch:
    """Count the unusable as unhealthy: the store saw them at capacity, by the leases we hold."""
    return NoMatch(
        considered=found.considered,
        unhealthy=found.unhealthy + unusable,
        at_capacity=found.at_capacity - unusable,
        in_cooldown=found.in_cooldown,
        retry_after_seconds=None,
    )


def _lease_row(lease: Lease) -> LeaseRow:
    return LeaseRow(
        id=lease.id,
        proxy=ProxyName(namespace=lease.namespace, name=lease.name),
        target=lease.target or None,
        expires_at=lease.expires_at,
        ttl_seconds=lease.ttl_seconds,
    )

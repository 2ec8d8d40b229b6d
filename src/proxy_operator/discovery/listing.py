"""Filtering, ordering and paging of the fleet.

A page continues after a key, not at an offset: proxies that come or go between two pages never
make a third one appear twice or not at all.
"""

import base64
import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from proxy_operator.discovery.model import InvalidRequestError, ListQuery
from proxy_operator.domain.condition import ConditionType, is_true
from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.objects import ObjectKey, key_of

_DIGEST_BYTES: Final = 8


def is_leasable(proxy: Proxy) -> bool:
    """Tell whether probes succeed, the address is known and nobody is deleting it."""
    return (
        not proxy.metadata.is_deleting
        and proxy.address is not None
        and is_true(proxy.status.conditions, ConditionType.HEALTHY)
    )


def select_page(
    proxies: Iterable[Proxy], query: ListQuery, is_healthy: Callable[[Proxy], bool] = is_leasable
) -> tuple[list[Proxy], str | None]:
    """Return the proxies of this page in order of namespace and name, and the next page's token.

    `is_healthy` judges for the filter of that name. InvalidRequestError when the token was not
    given out for these filters.
    """
    after = None if query.token is None else _read_token(query.token, query)
    matches = _matches(proxies, query, after, is_healthy)
    if query.limit is None:
        return [proxy for _, proxy in sorted(matches, key=lambda pair: pair[0])], None
    page = heapq.nsmallest(query.limit + 1, matches, key=lambda pair: pair[0])
    if len(page) <= query.limit:
        return [proxy for _, proxy in page], None
    page.pop()
    return [proxy for _, proxy in page], _write_token(page[-1][0], query)


def _matches(
    proxies: Iterable[Proxy],
    query: ListQuery,
    after: ObjectKey | None,
    is_healthy: Callable[[Proxy], bool],
) -> Iterator[tuple[ObjectKey, Proxy]]:
    for proxy in proxies:
        attributes = proxy.spec.attributes
        if any(attributes.get(key) != value for key, value in query.attributes):
            continue
        if query.is_healthy is not None and is_healthy(proxy) is not query.is_healthy:
            continue
        key = key_of(proxy)
        if after is None or key > after:
            yield key, proxy


def _digest(payload: bytes, query: ListQuery) -> bytes:
    filters = msgspec.json.encode([sorted(query.attributes), query.is_healthy, query.namespace])
    return hashlib.blake2b(payload + b"\0" + filters, digest_size=_DIGEST_BYTES).digest()


def _write_token(last: ObjectKey, query: ListQuery) -> str:
    # The digest ties the token to its filters and shows damage. It needs no key: a forged
    # position lets a client see nothing that it could not ask for without one.
    payload = msgspec.json.encode(last)
    return base64.urlsafe_b64encode(_digest(payload, query) + payload).decode().rstrip("=")


def _read_token(token: str, query: ListQuery) -> ObjectKey:
    wrong = "continue: not a token of this list with these filters; start again without it"
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except ValueError as err:
        raise InvalidRequestError(wrong) from err
    digest, payload = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
    if digest != _digest(payload, query):
        raise InvalidRequestError(wrong)
    try:
        return ObjectKey(*msgspec.json.decode(payload, type=tuple[str, str]))
    except msgspec.MsgspecError as err:
        raise InvalidRequestError(wrong) from err

"""Tells the lease store of every Proxy: a handler for the informer's store.

The rule: a candidate that cannot be leased now is still told, as unhealthy; only a Proxy that is
gone, or was replaced by a namesake, is removed.
"""

from proxy_operator.domain.condition import ConditionType, is_true
from proxy_operator.domain.lease import Candidate
from proxy_operator.domain.proxy import Proxy
from proxy_operator.leasing.ports import CandidateSink
from proxy_operator.runtime.store import StoreEvent


def candidate_of(proxy: Proxy) -> Candidate:
    """Return what the lease store needs to know of a Proxy."""
    address = proxy.address
    return Candidate(
        uid=proxy.metadata.uid,
        namespace=proxy.metadata.namespace,
        name=proxy.metadata.name,
        address=address,
        attributes=proxy.spec.attributes,
        is_healthy=(
            is_true(proxy.status.conditions, ConditionType.HEALTHY)
            and address is not None
            and not proxy.metadata.is_deleting
        ),
        latency_millis=proxy.status.latency_millis or 0,
        max_leases=proxy.spec.max_leases,
    )


class CandidateFeed:
    """Keeps a sink equal to the Proxies of an informer's store."""

    def __init__(self, sink: CandidateSink) -> None:
        self._sink = sink

    def handle(self, event: StoreEvent[Proxy]) -> None:
        """Pass one change on; echoes of our own writes too, so that verdicts count at once."""
        old, new = event.old, event.new
        if old is not None and (new is None or old.metadata.uid != new.metadata.uid):
            self._sink.remove(old.metadata.uid)
        if new is not None:
            self._sink.upsert(candidate_of(new))

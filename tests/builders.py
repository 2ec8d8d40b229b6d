"""Objects for tests, valid by default; every builder takes what the test is about."""

import itertools
from datetime import UTC, datetime
from typing import Any

import msgspec

from proxy_operator.domain.meta import ObjectMeta
from proxy_operator.domain.names import CREDENTIALS_LABEL, instance_name, owner_labels
from proxy_operator.domain.proxy import (
    Endpoint,
    Mode,
    ProviderName,
    Proxy,
    ProxySpec,
    ProxyStatus,
)
from proxy_operator.domain.secret import Secret
from proxy_operator.provisioning.contract import CreateRequest
from proxy_operator.runtime.clock import LoopClock

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_uids = itertools.count(1)


def a_meta(name: str = "p1", **fields: Any) -> ObjectMeta:
    fields.setdefault("uid", f"00000000-0000-4000-8000-{next(_uids):012d}")
    fields.setdefault("generation", 1)
    return ObjectMeta(name=name, **fields)


def a_proxy(
    name: str = "p1",
    *,
    status: ProxyStatus | None = None,
    meta: dict[str, Any] | None = None,
    **spec: Any,
) -> Proxy:
    """A Managed proxy at the local provider, unless `spec` says otherwise."""
    if spec.get("mode") is not Mode.EXTERNAL and "endpoint" not in spec:
        spec.setdefault("provider", ProviderName.LOCAL)
    return Proxy(
        metadata=a_meta(name, **(meta or {})),
        spec=ProxySpec(**spec),
        status=status or ProxyStatus(),
    )


def an_external(
    name: str = "p1", host: str = "192.0.2.1", port: int = 3128, **fields: Any
) -> Proxy:
    return a_proxy(name, mode=Mode.EXTERNAL, endpoint=Endpoint(host=host, port=port), **fields)


def a_secret(name: str = "s1", *, labels: dict[str, str] | None = None, **data: bytes) -> Secret:
    """A Secret that holds credentials and says so by its label, unless told otherwise."""
    return Secret(
        metadata=a_meta(name, labels={CREDENTIALS_LABEL: "true"} if labels is None else labels),
        data=data or {"username": b"crawler", "password": b"s3cret"},
    )


def a_manifest(proxy: Proxy | Secret) -> dict[str, Any]:
    """The manifest a user would write for this object."""
    built: dict[str, Any] = msgspec.to_builtins(proxy)
    built.pop("status", None)
    meta = {
        k: v
        for k, v in built["metadata"].items()
        if k in {"name", "namespace", "labels", "annotations"}
    }
    return {**built, "metadata": {"namespace": "default", **meta}}


def a_clock() -> LoopClock:
    """The running loop's time, on the calendar of the tests."""
    return LoopClock(EPOCH)


def a_create_request(
    proxy: Proxy | None = None, *, cluster_id: str = "cluster-1", **fields: Any
) -> CreateRequest:
    """What the reconciler would ask of a provider for this proxy."""
    proxy = proxy or a_proxy()
    uid = proxy.metadata.uid
    labels = owner_labels(uid=uid, cluster_id=cluster_id, spec_hash="0" * 32)
    return CreateRequest(
        **{
            "name": instance_name(uid),
            "namespace": proxy.metadata.namespace,
            "proxy_name": proxy.metadata.name,
            "uid": uid,
            "request_id": f"request-of-{uid}",
            "zone": "",
            "spec": proxy.spec,
            "labels": labels,
            **fields,
        }
    )

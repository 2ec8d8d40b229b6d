"""Which Proxies an event elsewhere concerns."""

from collections.abc import Iterable
from typing import Final

from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret
from proxy_operator.runtime.objects import ObjectKey, key_of
from proxy_operator.runtime.store import Lister

REFERENCE_INDEX: Final = "reference"


def secrets_of(proxy: Proxy) -> Iterable[str]:
    """Index a Proxy by the Secrets it uses, as `namespace/name`."""
    spec = proxy.spec
    names = [
        ref.name
        for ref in (
            spec.credentials_secret_ref,
            spec.cloud_init.secret_ref if spec.cloud_init else None,
        )
        if ref is not None
    ]
    return {f"{proxy.metadata.namespace}/{name}" for name in names}


def proxies_using(proxies: Lister[Proxy], secret: Secret) -> list[ObjectKey]:
    """Return the Proxies to reconcile when this Secret changes."""
    return [key_of(proxy) for proxy in proxies.by_index(REFERENCE_INDEX, str(key_of(secret)))]

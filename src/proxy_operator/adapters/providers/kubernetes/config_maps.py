"""The ConfigMaps that squid Pods read: applied before the Pod, removed after it.

A rule a visitor must keep: a log may say which fields change, never a value.
"""

import logging
from typing import Final

from proxy_operator.adapters.kube.resources import CONFIG_MAP, Document
from proxy_operator.adapters.providers.kubernetes.applied import differences
from proxy_operator.adapters.providers.kubernetes.errors import asking, making, or_none
from proxy_operator.adapters.providers.kubernetes.ports import ResourceClient
from proxy_operator.adapters.providers.kubernetes.recent import Recent
from proxy_operator.runtime.objects import ObjectKey

logger = logging.getLogger(__name__)

_REMEMBERED: Final = 1000


class ConfigMaps:
    """Keeps what is wanted as it is wanted, under one field manager."""

    def __init__(self, client: ResourceClient, field_manager: str) -> None:
        self._client = client
        self._manager = field_manager
        self._applied = Recent[ObjectKey, str](_REMEMBERED)

    async def apply(self, document: Document) -> None:
        """See to it that a ConfigMap is there as wanted.

        What this process applied before is read first, and left alone if it is still so. A first
        time needs no look: applying what is applied changes nothing.
        """
        meta = document["metadata"]
        key = ObjectKey(meta["namespace"], meta["name"])
        changes: list[str] | str = "not read"
        if key in self._applied:
            with asking(f"read ConfigMap {key.name}"):
                stored = await or_none(self._client.get(CONFIG_MAP, key))
            changes = differences(document, stored, self._manager) if stored else "new"
            if not changes:
                return
        logger.debug("applying", extra={"config_map": str(key), "changes": changes})
        with making(f"apply ConfigMap {key.name}"):
            await self._client.apply(CONFIG_MAP, document, self._manager)
        self._applied.note(key, key.name)

    async def delete(self, key: ObjectKey) -> None:
        """See to it that there is none of that name."""
        self._applied.take(key)
        with asking(f"delete ConfigMap {key.name}"):
            await or_none(self._client.delete(CONFIG_MAP, key))

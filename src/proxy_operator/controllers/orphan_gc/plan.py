"""Which instances are orphans: a pure decision on what was listed.

The one rule: kill only what is proven. Anything unknown, young, foreign or in doubt stays.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from proxy_operator.domain.instance import Instance, InstanceState, decode_intent
from proxy_operator.domain.names import (
    CLUSTER_LABEL,
    INTENT_ANNOTATION,
    UID_LABEL,
    instance_name,
)
from proxy_operator.domain.proxy import Proxy
from proxy_operator.provisioning.contract import Provider


class Kill(NamedTuple):
    """An instance to delete, and why."""

    instance: Instance
    uid: str
    """The Proxy that it was made for."""
    owner: Proxy | None
    """That Proxy, when it lives: then the instance is a second one."""
    why: str


class Grounds(NamedTuple):
    """What a kill is judged by."""

    cluster_id: str
    min_age: timedelta
    now: datetime
    unreadable: frozenset[str] = frozenset()
    """Uids of Proxies that exist and cannot be read: their instances are theirs."""


def plan_kills(
    instances: Iterable[Instance],
    proxies: Iterable[Proxy],
    provider: Provider,
    grounds: Grounds,
) -> list[Kill]:
    """Return the orphans among the instances of one provider.

    `proxies` must have been listed after the instances, so that every instance older than the
    list has its Proxy in it. A deleting Proxy is alive: its finalizer owns that deletion.
    """
    owners = {proxy.metadata.uid: proxy for proxy in proxies}
    kills = []
    for instance in instances:
        uid = instance.labels.get(UID_LABEL)
        if not uid or uid in grounds.unreadable or not _is_killable(instance, grounds):
            continue
        owner = owners.get(uid)
        if owner is None:
            kills.append(Kill(instance, uid, None, "its Proxy no longer exists"))
        elif not owner.metadata.is_deleting and instance.provider_id not in _claimed_ids(
            owner, provider
        ):
            kills.append(Kill(instance, uid, owner, "its Proxy has another instance"))
    return kills


def _is_killable(instance: Instance, grounds: Grounds) -> bool:
    return (
        instance.labels.get(CLUSTER_LABEL) == grounds.cluster_id
        and instance.state is not InstanceState.TERMINATING
        and instance.created_at is not None
        and grounds.now - instance.created_at > grounds.min_age
    )


def _claimed_ids(proxy: Proxy, provider: Provider) -> set[str | None]:
    """Return the ids that status or intent point at.

    With neither, and with an intent that cannot be read, every place it may be in counts.
    """
    name, namespace = instance_name(proxy.metadata.uid), proxy.metadata.namespace
    try:
        intent = decode_intent(proxy.metadata.annotations.get(INTENT_ANNOTATION))
    except ValueError:
        intent = None
    zones = (intent.zone,) if intent else provider.placements(proxy.spec)
    return {
        proxy.status.provider_id,
        *(provider.provider_id(namespace=namespace, name=name, zone=zone) for zone in zones),
    }

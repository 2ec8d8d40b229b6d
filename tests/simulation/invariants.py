"""What must be true once nothing has gone wrong for a while."""

from proxy_operator.domain.names import SPEC_HASH_LABEL, UID_LABEL, spec_hash
from proxy_operator.domain.secret import credentials_of
from tests.simulation.world import Cluster, Universe
from tests.worlds import FINGERPRINTS

MOST_INSERTS = 10
"""In an hour, of one Proxy, while no zone has room."""
MOST_LISTS_PER_HOUR = 3 * 60 + 6
"""What the shared list asks, and a sweep each ten minutes; however many Proxies there are."""


async def judge_settled(universe: Universe) -> list[str]:
    """Return what is wrong with a fleet that has had time to settle."""
    wrong = [*universe.violations, *universe.cloud.ledger.violations]
    for cluster in universe.clusters:
        wrong += await _judge_cluster(universe, cluster)
    wrong += [f"the foreign {m.path} is gone" for m in universe.foreign if m.is_gone]
    return wrong


async def _judge_cluster(universe: Universe, cluster: Cluster) -> list[str]:
    wrong = []
    left = {m.path: m for m in universe.machines_of(cluster.cluster_id)}
    [secret] = cluster.store.now_stored("Secret")
    for proxy in cluster.proxies():
        name, uid = proxy.metadata.name, proxy.metadata.uid
        if proxy.metadata.is_deleting:
            wrong.append(f"{cluster.cluster_id}: {name} is still being deleted")
            continue
        mine = [left.pop(path) for path, m in [*left.items()] if m.labels.get(UID_LABEL) == uid]
        if [m.status for m in mine] != ["RUNNING"]:
            seen = [f"{m.path} {m.status}" for m in mine]
            wrong.append(f"{cluster.cluster_id}: {name} has {seen}: {_why(proxy)}")
            continue
        uses = proxy.spec.credentials_secret_ref is not None
        digest = await FINGERPRINTS.fingerprint(
            user_data=None, credentials=credentials_of(secret) if uses else None
        )
        if mine[0].labels.get(SPEC_HASH_LABEL) != spec_hash(proxy.spec, digest):
            wrong.append(f"{cluster.cluster_id}: {name} has an outdated instance: {_why(proxy)}")
        if proxy.status.ip != mine[0].nat_ip:
            wrong.append(f"{cluster.cluster_id}: {name} shows another address")
    wrong += [f"{cluster.cluster_id}: nobody wants {path}" for path in left]
    return wrong


def _why(proxy: object) -> str:
    status = getattr(proxy, "status", None)
    return (
        "; ".join(f"{c.type}={c.status} {c.reason} {c.message}" for c in status.conditions[:1])
        if status
        else ""
    )

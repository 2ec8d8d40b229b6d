"""Names with a meaning outside: labels, annotations, finalizer, instance names, spec hash."""

import base64
import hashlib
from typing import Any, Final

import msgspec

from proxy_operator.domain.instance import canonical_json
from proxy_operator.domain.meta import API_GROUP
from proxy_operator.domain.proxy import GcpBlock, ProxySpec
from proxy_operator.domain.secret import Credentials

FINALIZER: Final = f"{API_GROUP}/instance"
SPEC_HASH_ANNOTATION: Final = f"{API_GROUP}/spec-hash"
INTENT_ANNOTATION: Final = f"{API_GROUP}/intent"

CLOUD_INIT_LABEL: Final = f"{API_GROUP}/cloud-init"
CREDENTIALS_LABEL: Final = f"{API_GROUP}/credentials"

UID_LABEL: Final = "proxy-operator-uid"
CLUSTER_LABEL: Final = "proxy-operator-cluster"
SPEC_HASH_LABEL: Final = "proxy-operator-spec-hash"

# scrypt cost: about 50 ms and 16 MiB a guess (RFC 7914), paid once per distinct Secret content.
_SCRYPT_N: Final = 2**14
_SCRYPT_R: Final = 8
_SCRYPT_P: Final = 1


def instance_name(uid: str) -> str:
    """Name of the instance that belongs to a Proxy: 22 characters, legal everywhere.

    Derived from the UID, so a create that is repeated after a crash cannot make a second one.
    """
    digest = base64.b32encode(hashlib.sha256(uid.encode()).digest()).decode().lower()
    return f"proxy-{digest[:16]}"


def owner_labels(*, uid: str, cluster_id: str, spec_hash: str) -> dict[str, str]:
    """Labels every instance carries from the create call on."""
    return {UID_LABEL: uid, CLUSTER_LABEL: cluster_id, SPEC_HASH_LABEL: spec_hash}


def is_owned_by(labels: dict[str, str], *, uid: str, cluster_id: str) -> bool:
    """Tell whether both owner labels are ours."""
    return labels.get(UID_LABEL) == uid and labels.get(CLUSTER_LABEL) == cluster_id


def secret_fingerprint(
    *, user_data: bytes | None, credentials: Credentials | None, salt: str
) -> str:
    """Digest of secret content, slow and salted so that it betrays no weak password.

    `salt` is the cluster id: the same content gives the same digest after a Secret was deleted
    and restored. Takes about 50 ms of CPU: call it in a thread and cache it. Empty when there is
    no secret content.
    """
    if user_data is None and credentials is None:
        return ""
    content = canonical_json(
        [
            None if user_data is None else base64.b64encode(user_data).decode(),
            None if credentials is None else [credentials.username, credentials.password],
        ]
    )
    return hashlib.scrypt(
        content, salt=salt.encode(), n=_SCRYPT_N, r=_SCRYPT_R, p=_SCRYPT_P, dklen=16
    ).hex()


def spec_hash(spec: ProxySpec, fingerprint: str) -> str:
    """Hash of what an instance is made of: 32 characters of [0-9a-f].

    Covers the provider's block, the port and the secret content (by `secret_fingerprint`);
    not scheme, attributes, maxLeases or healthCheck, which change in place. An empty block
    counts as absent: writing `local: {}` asks for nothing new.
    """
    material = {
        "provider": spec.provider,
        "port": spec.port,
        # Where to go when the zone has none left is not what the instance is made of.
        "gcp": _without_empty({**msgspec.to_builtins(spec.gcp or GcpBlock()), "fallbackZones": {}}),
        "kubernetes": _without_empty(msgspec.to_builtins(spec.kubernetes)),
        "local": _without_empty(msgspec.to_builtins(spec.local)),
        "secrets": fingerprint,
    }
    return hashlib.sha256(canonical_json(material)).hexdigest()[:32]


def _without_empty(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value without the empty objects in it, or None when nothing is left."""
    if not isinstance(value, dict):
        return value
    kept = {key: _without_empty(item) for key, item in value.items()}
    return {key: item for key, item in kept.items() if item is not None} or None

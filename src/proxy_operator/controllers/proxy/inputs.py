"""What an instance is made of besides the spec: the content of Secrets, and the hash of it all."""

import asyncio
from collections import OrderedDict
from typing import Final, NamedTuple

from proxy_operator.controllers.proxy.context import Pass
from proxy_operator.domain.condition import ProvisionedReason
from proxy_operator.domain.names import owner_labels, secret_fingerprint, spec_hash
from proxy_operator.domain.secret import Credentials
from proxy_operator.provisioning.contract import CreateRequest

_CACHE_SIZE: Final = 4096


class Inputs(NamedTuple):
    """Everything needed to create, and to tell whether what exists is what is wanted."""

    user_data: bytes | None
    credentials: Credentials | None
    spec_hash: str


class InputsError(NamedTuple):
    """A Secret is missing or unusable, or the provider would refuse what they come to.

    Nothing can be created or replaced for now.
    """

    reason: ProvisionedReason
    message: str


async def gather_inputs(p: Pass) -> Inputs | InputsError:
    """Read the Secrets and compute the spec hash that the instance ought to have."""
    secrets = p.ports.secrets
    try:
        user_data = secrets.user_data_for(p.proxy)
    except ValueError as err:
        return InputsError(ProvisionedReason.CLOUD_INIT_ERROR, str(err))
    try:
        credentials = secrets.credentials_for(p.proxy)
    except ValueError as err:
        return InputsError(ProvisionedReason.CREDENTIALS_ERROR, str(err))
    fingerprint = await p.ports.fingerprints.fingerprint(
        user_data=user_data, credentials=credentials
    )
    return Inputs(user_data, credentials, spec_hash(p.proxy.spec, fingerprint))


def create_request(
    p: Pass, inputs: Inputs, *, zone: str, request_id: str, is_repeated: bool = False
) -> CreateRequest:
    """Return what to ask of a provider for this Proxy."""
    return CreateRequest(
        name=p.instance_name,
        namespace=p.key.namespace,
        proxy_name=p.key.name,
        uid=p.uid,
        request_id=request_id,
        zone=zone,
        spec=p.proxy.spec,
        labels=owner_labels(uid=p.uid, cluster_id=p.around.cluster_id, spec_hash=inputs.spec_hash),
        user_data=inputs.user_data,
        credentials=inputs.credentials,
        is_repeated=is_repeated,
    )


class ThreadFingerprints:
    """Fingerprints computed in a thread, each distinct content once."""

    def __init__(self, cluster_id: str) -> None:
        self._salt = cluster_id
        self._known: OrderedDict[tuple[bytes | None, str, str], str] = OrderedDict()

    async def fingerprint(self, *, user_data: bytes | None, credentials: Credentials | None) -> str:
        """Return the digest; empty for no content."""
        if user_data is None and credentials is None:
            return ""
        name, password = (credentials.username, credentials.password) if credentials else ("", "")
        key = (user_data, name, password)
        if key not in self._known:
            self._known[key] = await asyncio.to_thread(
                secret_fingerprint, user_data=user_data, credentials=credentials, salt=self._salt
            )
            if len(self._known) > _CACHE_SIZE:
                self._known.popitem(last=False)
        return self._known[key]

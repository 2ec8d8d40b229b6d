"""Secrets as providers, probes and leases need them: found by reference, checked by label.

Two rules: a Secret without the label for its use is as good as absent, in both homes; and a
client is told only what the instance it is sent to asks for.
"""

from proxy_operator.domain.names import CLOUD_INIT_LABEL, CREDENTIALS_LABEL
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Credentials, Secret, credentials_of
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.store import Lister, StoreEvent


class SecretReader:
    """Reads the Secrets that a Proxy refers to, from the stores of informers."""

    def __init__(self, credentials: Lister[Secret], cloud_init: Lister[Secret]) -> None:
        """Each store need only hold what has the label for its use."""
        self._credentials = credentials
        self._cloud_init = cloud_init

    def credentials_for(self, proxy: Proxy) -> Credentials | None:
        """Return what the proxy asks of its clients, or None when it asks nothing.

        ValueError says which Secret is missing, unlabelled or unusable.
        """
        ref = proxy.spec.credentials_secret_ref
        if ref is None:
            return None
        secret = _labelled(self._credentials, proxy, ref.name, CREDENTIALS_LABEL)
        try:
            return credentials_of(secret)
        except ValueError as err:
            raise ValueError(f"Secret {ref.name}: {err}") from err

    def user_data_for(self, proxy: Proxy) -> bytes | None:
        """Return the user data for the instance's first boot, or None when there is none.

        ValueError says which Secret or key is missing or unlabelled.
        """
        if proxy.spec.cloud_init is None:
            return None
        ref = proxy.spec.cloud_init.secret_ref
        data = _labelled(self._cloud_init, proxy, ref.name, CLOUD_INIT_LABEL).data
        if ref.key not in data:
            raise ValueError(f"Secret {ref.name} has no key {ref.key}")
        return data[ref.key]


def _labelled(secrets: Lister[Secret], proxy: Proxy, name: str, label: str) -> Secret:
    secret = secrets.get(ObjectKey(proxy.metadata.namespace, name))
    if secret is None or secret.metadata.labels.get(label) != "true":
        raise ValueError(
            f'Secret {name} does not exist or is not labelled; add the label {label}: "true"'
        )
    return secret


class MadeWith:
    """Which credentials each instance was made with, as far as this process knows. In memory."""

    def __init__(self) -> None:
        self._known: dict[str, Credentials | None] = {}

    def note(self, uid: str, credentials: Credentials | None) -> None:
        """Learn what the instance of the Proxy with this UID is made with."""
        self._known[uid] = credentials

    def is_same(self, uid: str, credentials: Credentials | None) -> bool:
        """Tell whether the instance asks for these.

        Of an instance of an earlier process nothing is known: what is asked about first is taken
        for true.
        """
        return self._known.setdefault(uid, credentials) == credentials

    def handle(self, event: StoreEvent[Proxy]) -> None:
        """Forget a Proxy that is gone, or was replaced by a namesake."""
        old, new = event.old, event.new
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._known.pop(old.metadata.uid, None)


class ServingCredentials:
    """Credentials for those who are sent to a proxy now. Ask about healthy proxies only."""

    def __init__(self, reader: SecretReader, made_with: MadeWith) -> None:
        self._reader = reader
        self._made_with = made_with

    def credentials_for(self, proxy: Proxy) -> Credentials | None:
        """Return what the proxy asks of its clients now, or None when it asks nothing.

        ValueError also when the Secret has changed and the instance has not followed yet.
        """
        credentials = self._reader.credentials_for(proxy)
        if proxy.is_managed and not self._made_with.is_same(proxy.metadata.uid, credentials):
            raise ValueError("its instance was made with other credentials, and has to be replaced")
        return credentials

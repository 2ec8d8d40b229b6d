"""A user of a kubeconfig: which proofs it means, which certificate, whom it stands in for.

The rule: what cannot be honoured is refused, for a skipped field would be another identity.
"""

import base64
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

from proxy_operator.adapters.kube.access import ClusterConfigError
from proxy_operator.adapters.kube.credentials import Header
from proxy_operator.adapters.kube.entry import Entry
from proxy_operator.adapters.kube.kubeconfig_file import User
from proxy_operator.adapters.kube.material import Material
from proxy_operator.adapters.kube.proofs import (
    FixedProof,
    Proof,
    Proofs,
    TokenFile,
    bearer,
    is_token,
    read_token,
)
from proxy_operator.runtime.clock import Clock


class OwnCertificate(NamedTuple):
    """The client certificate that a user entry gives."""

    certificate: Material | None
    key: Material | None


def check_user(entry: Entry[User]) -> None:
    """Refuse what contradicts itself or is not supported. ClusterConfigError names the field."""
    user = entry.value
    if user.auth_provider is not None:
        raise entry.fault(
            "auth-provider", "is gone from Kubernetes since 1.26; use an exec plugin instead"
        )
    if user.token and (user.username or user.password):
        raise entry.fault("token", "must not stand together with username or password")
    if user.token and not is_token(user.token):
        raise entry.fault("token", "must be one word of printable ASCII")
    if user.username and ":" in user.username:
        raise entry.fault("username", "must hold no colon")
    if not user.impersonate and (
        user.impersonate_uid or user.impersonate_groups or user.impersonate_extra
    ):
        raise entry.fault("as", "must name the user that as-uid, as-groups or as-user-extra are of")


def own_proofs(entry: Entry[User], clock: Clock) -> Proofs | None:
    """Return the token or the password that the entry has, or None when it has neither.

    ClusterConfigError when its token file cannot be read and no token stands beside it.
    """
    user = entry.value
    if user.token_file:
        path = entry.path(user.token_file)
        # A file wins over the token, which is for as long as the file cannot be read.
        if user.token:
            return TokenFile(path, user.token, clock)
        try:
            return TokenFile(path, read_token(path), clock)
        except ValueError as err:
            raise ClusterConfigError(f"{entry.where('tokenFile')}: {err}") from err
    if user.token:
        return FixedProof(bearer(user.token))
    if user.username or user.password:
        pair = f"{user.username or ''}:{user.password or ''}".encode()
        return FixedProof(Proof(authorization=f"Basic {base64.b64encode(pair).decode()}"))
    return None


def own_certificate(entry: Entry[User]) -> OwnCertificate:
    """Return the client certificate and key of the entry. ClusterConfigError when one lacks."""
    user = entry.value
    certificate = entry.material(
        "client-certificate", user.client_certificate, user.client_certificate_data
    )
    key = entry.material("client-key", user.client_key, user.client_key_data)
    if certificate is not None and key is None:
        raise entry.fault("client-key", "must be given with the client certificate")
    # As kubectl, which looks at the key only where there is a certificate.
    return OwnCertificate(certificate, key if certificate is not None else None)


def impersonation(entry: Entry[User]) -> tuple[Header, ...]:
    """Return the headers by which we act as another user.

    https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
    ClusterConfigError when a value cannot stand in a header.
    """
    headers = tuple(_impersonation(entry.value))
    for name, value in headers:
        if not value.isprintable():
            raise entry.fault("as", f"makes a header {name} that is not printable")
    return headers


def _impersonation(user: User) -> Iterator[Header]:
    if not user.impersonate:
        return
    yield "Impersonate-User", user.impersonate
    if user.impersonate_uid:
        yield "Impersonate-Uid", user.impersonate_uid
    for group in user.impersonate_groups or ():
        yield "Impersonate-Group", group
    for key, values in (user.impersonate_extra or {}).items():
        for value in values:
            yield f"Impersonate-Extra-{quote(key.lower(), safe='')}", value

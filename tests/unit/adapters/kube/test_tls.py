"""TLS contexts: pairs that cannot be shown, and files that are replaced."""

import os
import ssl
import tempfile
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from proxy_operator.adapters.kube.access import ClusterConfigError
from proxy_operator.adapters.kube.material import Material
from proxy_operator.adapters.kube.tls import KeyPair, TlsContexts, Trust, check_pair


def a_pair(authority: trustme.CA, name: str = "me") -> KeyPair:
    own = authority.issue_cert("me@example.com", common_name=name)
    return KeyPair(own.cert_chain_pems[0].bytes(), own.private_key_pem.bytes())


class Files:
    """An authority, a certificate and a key on disk."""

    def __init__(self, directory: Path, authority: trustme.CA) -> None:
        self.authority, self.certificate, self.key = (directory / n for n in ("ca", "crt", "key"))
        self.authority.write_bytes(authority.cert_pem.bytes())
        self.write(a_pair(authority))

    def write(self, pair: KeyPair) -> None:
        self.certificate.write_bytes(pair.certificate)
        self.key.write_bytes(pair.key)

    def contexts(self, clock) -> TlsContexts:
        trust = Trust(Material("the authority", self.authority))
        certificate = Material("the certificate", self.certificate)
        return TlsContexts(trust, certificate, Material("the key", self.key), clock)


@pytest.fixture
def files(tmp_path: Path, authority: trustme.CA) -> Files:
    return Files(tmp_path, authority)


def test_peers_are_verified_as_go_does(files, clock):
    context = files.contexts(clock).current()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert len(context.get_ca_certs()) == 1, "the system's authorities are not believed too"


def test_one_context_until_a_file_is_replaced(files, clock, authority):
    contexts = files.contexts(clock)
    first = contexts.current()
    clock.move(3600)
    assert contexts.current() is first
    assert not contexts.reload()
    files.write(a_pair(authority, "somebody else"))
    assert contexts.current() is first, "looked at once a minute"
    clock.move(60)
    second = contexts.current()
    assert second is not first
    files.write(a_pair(authority, "a third one"))
    assert contexts.reload()
    assert contexts.current() is not second


def test_half_a_replaced_pair_is_left_for_the_next_time(files, clock, authority, caplog):
    contexts = files.contexts(clock)
    first = contexts.current()
    new = a_pair(authority, "somebody else")
    files.certificate.write_bytes(new.certificate)
    assert not contexts.reload()
    assert contexts.current() is first
    assert "does not belong" in caplog.records[0].reason
    files.key.write_bytes(new.key)
    assert contexts.reload()


def test_a_missing_or_broken_file_is_named_at_the_start(files, clock):
    files.key.unlink()
    with pytest.raises(ClusterConfigError, match=r"the key: .*/key cannot be read: no such file"):
        files.contexts(clock).current()
    files.key.write_bytes(b"nothing")
    with pytest.raises(ClusterConfigError, match="the certificate: no client certificate and key"):
        files.contexts(clock).current()


def test_a_key_of_another_certificate(authority):
    with pytest.raises(ValueError, match="the client key does not belong to the certificate"):
        check_pair(KeyPair(a_pair(authority).certificate, a_pair(authority).key))


def test_an_encrypted_key_does_not_ask_at_the_terminal(authority):
    pair = a_pair(authority)
    encrypted = serialization.load_pem_private_key(pair.key, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"x"),
    )
    with pytest.raises(ValueError, match="the client key is encrypted"):
        check_pair(KeyPair(pair.certificate, encrypted))


def test_a_pair_is_shown_where_the_system_has_no_files_in_memory(authority, monkeypatch, tmp_path):
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    check_pair(a_pair(authority))
    assert not [*tmp_path.iterdir()]


def test_keys_stay_out_of_repr(authority):
    pair = a_pair(authority)
    assert "PRIVATE" not in repr(pair)
    assert "PRIVATE" not in repr(Material("here", pair.key))

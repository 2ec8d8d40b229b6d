import ssl
from pathlib import Path

import pytest
import trustme

from proxy_operator.adapters.probing.tls import probe_tls_context


def test_peers_are_verified_by_name():
    context = probe_tls_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_a_users_authority_is_added_to_the_systems(tmp_path: Path, authority: trustme.CA):
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    before = len(probe_tls_context().get_ca_certs())
    assert len(probe_tls_context(path).get_ca_certs()) == before + 1


@pytest.mark.parametrize(
    ("content", "clause"), [(None, "cannot be read"), (b"hello", "holds no PEM certificate")]
)
def test_a_bad_file_is_named(tmp_path: Path, content: bytes | None, clause: str):
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=f"ca.pem {clause}"):
        probe_tls_context(path)

"""Which source goes first, and what is said when there is none."""

from pathlib import Path

import pytest
import trustme

from proxy_operator.adapters.kube import sources
from proxy_operator.adapters.kube.access import ClusterConfigError
from proxy_operator.adapters.kube.sources import discover_access
from tests.unit.adapters.kube.clusters import HandClock, a_kubeconfig

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, authority: trustme.CA) -> Path:
    mount = tmp_path / "serviceaccount"
    mount.mkdir()
    (mount / "token").write_text("of-pod")
    (mount / "ca.crt").write_bytes(authority.cert_pem.bytes())
    (mount / "namespace").write_text("crawl")
    monkeypatch.setattr(sources, "_SERVICE_ACCOUNT", mount)
    return mount


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".kube").mkdir()
    return a_kubeconfig(tmp_path / ".kube" / "config", name="home")


def source_of(
    environ: dict[str, str], kubeconfig: Path | None = None, context: str | None = None
) -> str:
    return discover_access(kubeconfig, context, environ, HandClock()).source


def test_the_order(tmp_path, mount, home):
    flag = a_kubeconfig(tmp_path / "flag", name="flag")
    variable = a_kubeconfig(tmp_path / "variable", name="variable")
    environ = {"HOME": str(tmp_path), **POD, "KUBECONFIG": f":{tmp_path / 'none'}:{variable}"}
    assert source_of(environ, flag) == f'context "flag" of {flag}'
    assert source_of(environ) == f'context "variable" of {variable}'
    environ["KUBECONFIG"] = ""
    assert source_of(environ) == "the service account of this Pod"
    assert source_of(environ, context="home") == f'context "home" of {home}'
    assert source_of({"HOME": str(tmp_path)}) == f'context "home" of {home}'


def test_a_named_file_that_is_missing_is_an_error(tmp_path, mount, home):
    environ = {"HOME": str(tmp_path), **POD, "KUBECONFIG": "/nowhere/a:/nowhere/b"}
    with pytest.raises(ClusterConfigError, match="no such kubeconfig: /nowhere/a, /nowhere/b"):
        source_of(environ)


def test_a_pod_without_its_token_may_have_a_kubeconfig(tmp_path, mount, home):
    (mount / "token").unlink()
    environ = {"HOME": str(tmp_path), **POD}
    assert source_of(environ) == f'context "home" of {home}'
    home.unlink()
    with pytest.raises(ClusterConfigError, match="automountServiceAccountToken"):
        source_of(environ)


def test_nothing_is_configured(tmp_path):
    with pytest.raises(ClusterConfigError, match="no Kubernetes cluster is configured: pass"):
        source_of({"HOME": str(tmp_path)})
    with pytest.raises(ClusterConfigError, match="no Kubernetes cluster is configured: pass"):
        source_of({}, context="x")

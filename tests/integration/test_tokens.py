"""Service-account tokens, which the kubelet replaces on disk while we run."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from proxy_operator.adapters.kube.client import KubeClient, Request
from proxy_operator.adapters.kube.sources import discover_access
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.errors import ForbiddenError
from tests.integration.replicas import ClusterSite, event_code

CREDENTIAL = "authentication.kubernetes.io/credential-id"


class Account:
    """A service account that may see whom it is, and the file with its token."""

    def __init__(self, site: ClusterSite, path: Path) -> None:
        self._site = site
        self.path = path
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "operator"}}
        site.send("POST", site.path("serviceaccounts"), body)

    def new_token(self) -> str:
        """Return a bound token as the kubelet asks for them."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 600},
        }
        answer = self._site.send("POST", self._site.path("serviceaccounts", "operator/token"), body)
        token: str = answer["status"]["token"]
        return token

    def write(self, token: str) -> None:
        """Replace the file as the kubelet does: at once, by another one."""
        fresh = self.path.with_suffix(".new")
        fresh.write_text(token)
        os.replace(fresh, self.path)

    def kubeconfig(self, path: Path) -> Path:
        plane = self._site.plane
        cluster = {
            "server": plane.url,
            "certificate-authority": str(plane.certificates.authority),
        }
        config: dict[str, Any] = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"tokenFile": str(self.path)}}],
        }
        path.write_text(json.dumps(config))
        return path


REVIEW = Request(
    "POST",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    "who we are",
    {},
    json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).encode(),
)


async def credential_of(client: KubeClient) -> str:
    """Return the id of the token that a request goes with."""
    answer = json.loads(await client.send(REVIEW))
    found: str = answer["status"]["userInfo"]["extra"][CREDENTIAL][0]
    return found


async def test_a_replaced_token_is_used(site: ClusterSite, tmp_path: Path):
    account = Account(site, tmp_path / "token")
    account.write(account.new_token())
    access = discover_access(account.kubeconfig(tmp_path / "config"), None, {}, SystemClock())
    async with KubeClient(access) as client:
        first = await credential_of(client)
        assert await credential_of(client) == first
        account.write(account.new_token())
        async with asyncio.timeout(3):
            while await credential_of(client) == first:  # noqa: ASYNC110 - files send no events
                await asyncio.sleep(0.1)


async def test_a_refused_token_is_replaced_within_the_request(site: ClusterSite, tmp_path: Path):
    account = Account(site, tmp_path / "token")
    good = account.new_token()
    account.write("revoked")
    access = discover_access(account.kubeconfig(tmp_path / "config"), None, {}, SystemClock())
    async with KubeClient(access) as client:
        before = refusals(site)
        with pytest.raises(ForbiddenError, match="does not accept our credentials"):
            await credential_of(client)
        # The file is not looked at so soon again: it is the 401 that makes us.
        account.write(good)
        assert await credential_of(client)
    # One more, unless a busy machine took a second over it.
    assert refusals(site) - before in {1, 2}


def refusals(site: ClusterSite) -> int:
    """Return how often anybody was not accepted."""
    return [event_code(event) for event in site.plane.audited()].count(401)

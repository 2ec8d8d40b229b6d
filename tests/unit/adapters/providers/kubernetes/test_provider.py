"""What the contract kit cannot ask: order of writes, crashes between them, refusals."""

import asyncio
import base64
import logging
from typing import Any

import pytest

from proxy_operator.adapters.kube.resources import CONFIG_MAP, POD, SECRET, Document, Resource
from proxy_operator.adapters.providers.kubernetes.manifests import PodSettings
from proxy_operator.adapters.providers.kubernetes.provider import KubernetesProvider
from proxy_operator.domain.instance import InstanceState
from proxy_operator.domain.secret import Credentials
from proxy_operator.provisioning.contract import CreateRequest
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    InstanceNotFoundError,
    PermanentProviderError,
    ProviderError,
    QuotaExceededError,
    TransientProviderError,
)
from proxy_operator.runtime.errors import (
    ConflictError,
    FieldError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ObjectError,
    UnavailableError,
)
from proxy_operator.runtime.objects import ObjectKey
from tests.builders import a_clock, a_create_request, a_proxy
from tests.unit.adapters.providers.kubernetes.fake_cluster import FakeCluster

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

CREDENTIALS = Credentials("crawler", "s3cret-word")
QUOTA = ForbiddenError(
    'pods "p" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2'
)


def a_cluster() -> FakeCluster:
    return FakeCluster(a_clock())


def a_provider(
    cluster: FakeCluster, *, namespace: str | None = None, image: str = "squid"
) -> KubernetesProvider:
    return KubernetesProvider(
        cluster,
        PodSettings(image=image),
        cluster_id="cluster-1",
        namespace=namespace,
        clock=a_clock(),
    )


def a_request(**fields: Any) -> CreateRequest:
    return a_create_request(
        a_proxy(provider="kubernetes"), **{"credentials": CREDENTIALS, **fields}
    )


async def test_a_pod_is_made_after_its_configuration_and_before_its_secret() -> None:
    cluster = a_cluster()
    await a_provider(cluster).create(a_request())
    assert [(verb, resource) for verb, resource, _ in cluster.writes] == [
        ("apply", CONFIG_MAP),
        ("create", POD),
        ("create", SECRET),
    ]


@pytest.mark.parametrize("credentials", [CREDENTIALS, None])
async def test_a_new_pod_costs_one_request_for_each_object(credentials: Credentials | None) -> None:
    cluster = a_cluster()
    provider = a_provider(cluster)
    await provider.create(a_request(credentials=credentials))
    secret = [("create", SECRET)] if credentials else []
    assert cluster.requests == [("apply", CONFIG_MAP), ("create", POD), *secret]


async def test_another_process_finds_a_config_map_that_somebody_changed() -> None:
    cluster = a_cluster()
    request = a_request()
    await a_provider(cluster).create(request)
    (config,) = [one for key, one in cluster.objects.items() if key[0] == CONFIG_MAP]
    config["metadata"]["labels"].clear()
    await a_provider(cluster).create(request)
    (config,) = [one for key, one in cluster.objects.items() if key[0] == CONFIG_MAP]
    assert config["metadata"]["labels"]


async def test_a_config_map_that_went_with_its_pod_is_made_again_for_the_next() -> None:
    cluster = a_cluster()
    provider, request = a_provider(cluster), a_request(credentials=None)
    for _ in range(2):
        provider_id = await provider.create(request)
        assert (await provider.get(provider_id)).state is InstanceState.RUNNING
        await provider.delete(provider_id)
        assert cluster.named(CONFIG_MAP) == set()
        await asyncio.sleep(3)


async def test_a_config_map_removed_by_hand_is_made_again_by_the_next_create() -> None:
    cluster = a_cluster()
    cluster.has_started = False
    provider, request = a_provider(cluster), a_request(credentials=None)
    provider_id = await provider.create(request)
    cluster.objects = {key: one for key, one in cluster.objects.items() if key[0] != CONFIG_MAP}
    cluster.has_started = True
    assert (await provider.get(provider_id)).state is InstanceState.PROVISIONING
    await provider.create(request)
    assert (await provider.get(provider_id)).state is InstanceState.RUNNING


async def test_the_secret_holds_a_hash_and_belongs_to_the_pod() -> None:
    cluster = a_cluster()
    await a_provider(cluster).create(a_request())
    (secret,) = [one for (kind, _, _), one in cluster.objects.items() if kind == SECRET]
    users = base64.b64decode(secret["data"]["users"]).decode()
    assert users.startswith("crawler:$6$")
    assert CREDENTIALS.password not in users
    (pod,) = cluster.pods()
    assert [one["uid"] for one in secret["metadata"]["ownerReferences"]] == [pod["metadata"]["uid"]]


async def test_a_repeated_create_writes_nothing() -> None:
    cluster = a_cluster()
    provider, request = a_provider(cluster), a_request()
    await provider.create(request)
    before = list(cluster.writes)
    await provider.create(request)
    assert cluster.writes == before


async def test_a_create_that_died_before_the_secret_is_completed_by_the_next() -> None:
    cluster = a_cluster()
    provider, request = a_provider(cluster), a_request(request_id="first")
    cluster.failures["create", SECRET] = UnavailableError("gone away")
    with pytest.raises(TransientProviderError):
        await provider.create(request)
    assert len(cluster.pods()) == 1
    cluster.failures.clear()
    again = a_create_request(
        a_proxy(provider="kubernetes", meta={"uid": request.uid}),
        credentials=CREDENTIALS,
        request_id="second",
    )
    provider_id = await provider.create(again)
    assert (await provider.get(provider_id)).state is InstanceState.RUNNING


async def test_a_pod_whose_secret_never_came_counts_as_stopped() -> None:
    cluster = a_cluster()
    provider, request = a_provider(cluster), a_request()
    cluster.failures["create", SECRET] = UnavailableError("gone away")
    with pytest.raises(TransientProviderError):
        await provider.create(request)
    provider_id = provider.provider_id(namespace="default", name=request.name, zone="")
    assert (await provider.get(provider_id)).state is InstanceState.PROVISIONING
    await asyncio.sleep(31)
    assert (await provider.get(provider_id)).state is InstanceState.STOPPED


@pytest.mark.parametrize("credentials", [CREDENTIALS, None])
async def test_a_slow_start_is_not_mistaken_for_a_missing_secret(
    credentials: Credentials | None,
) -> None:
    cluster = a_cluster()
    cluster.has_started = False
    provider = a_provider(cluster)
    provider_id = await provider.create(a_request(credentials=credentials))
    await asyncio.sleep(300)
    assert (await provider.get(provider_id)).state is InstanceState.PROVISIONING


async def test_a_config_map_removed_by_hand_before_the_start_is_noticed() -> None:
    cluster = a_cluster()
    cluster.has_started = False
    provider = a_provider(cluster)
    provider_id = await provider.create(a_request())
    for key in [key for key in cluster.objects if key[0] == CONFIG_MAP]:
        del cluster.objects[key]
    await asyncio.sleep(31)
    assert (await provider.get(provider_id)).state is InstanceState.STOPPED


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (QUOTA, QuotaExceededError),
        (ForbiddenError("no rights"), PermanentProviderError),
        (InvalidError("Secret s", (FieldError("data", "", "no"),)), PermanentProviderError),
    ],
)
async def test_a_pod_that_cannot_have_its_secret_is_taken_back(
    refusal: ObjectError, kind: type[ProviderError]
) -> None:
    cluster = a_cluster()
    cluster.failures["create", SECRET] = refusal
    with pytest.raises(kind):
        await a_provider(cluster).create(a_request())
    assert all("deletionTimestamp" in pod["metadata"] for pod in cluster.pods())


async def test_a_secret_without_room_reads_the_same_at_every_try() -> None:
    cluster = a_cluster()
    cluster.failures["create", SECRET] = QUOTA
    provider, request = a_provider(cluster), a_request(request_id="first")
    messages = set()
    for number in range(2):
        proxy = a_proxy(provider="kubernetes", meta={"uid": request.uid})
        again = a_create_request(proxy, credentials=CREDENTIALS, request_id=f"r{number}")
        with pytest.raises(QuotaExceededError) as caught:
            await provider.create(again)
        messages.add(str(caught.value))
        await asyncio.sleep(3)
    assert len(messages) == 1


async def test_a_successor_does_not_use_the_secret_of_the_pod_before_it() -> None:
    cluster = a_cluster()
    provider, first = a_provider(cluster), a_request(request_id="first")
    provider_id = await provider.create(first)
    (old,) = cluster.named(SECRET)
    await provider.delete(provider_id)
    await asyncio.sleep(3)
    second = a_create_request(
        a_proxy(provider="kubernetes", meta={"uid": first.uid}),
        credentials=CREDENTIALS,
        request_id="second",
    )
    await provider.create(second)
    assert cluster.named(SECRET).isdisjoint({old})
    assert (await provider.get(provider_id)).state is InstanceState.RUNNING


async def test_deletion_takes_the_configuration_along() -> None:
    cluster = a_cluster()
    provider = a_provider(cluster)
    provider_id = await provider.create(a_request())
    await provider.delete(provider_id)
    await asyncio.sleep(3)
    with pytest.raises(InstanceNotFoundError):
        await provider.get(provider_id)
    assert cluster.objects == {}


async def test_a_terminating_pod_is_asked_once() -> None:
    cluster = a_cluster()
    provider = a_provider(cluster)
    provider_id = await provider.create(a_request())
    for _ in range(3):
        await provider.delete(provider_id)
        await provider.get(provider_id)
    assert [one[:2] for one in cluster.writes].count(("delete", POD)) == 1


class SwiftCluster(FakeCluster):
    """The Pod that was read is gone, and another one has its name, before anything else comes."""

    async def get(self, resource: Resource, key: ObjectKey) -> Document:
        found = await super().get(resource, key)
        if resource == POD:
            self.objects[(resource, *key)]["metadata"]["uid"] += "-successor"
        return found


async def test_a_delete_never_hits_a_successor() -> None:
    cluster = SwiftCluster(a_clock())
    provider = a_provider(cluster)
    provider_id = await provider.create(a_request())
    with pytest.raises(TransientProviderError):
        await provider.delete(provider_id)
    (pod,) = cluster.pods()
    assert "deletionTimestamp" not in pod["metadata"]


async def test_a_pod_that_was_just_looked_at_goes_without_another_look() -> None:
    cluster = a_cluster()
    provider = a_provider(cluster)
    provider_id = await provider.create(a_request())
    await provider.get(provider_id)
    cluster.requests.clear()
    await provider.delete(provider_id)
    assert cluster.requests == [("delete", POD), ("delete", CONFIG_MAP)]
    await asyncio.sleep(3)
    assert cluster.pods() == ()


async def test_a_pod_that_has_changed_since_it_was_looked_at_is_looked_at_again() -> None:
    cluster = a_cluster()
    provider = a_provider(cluster)
    provider_id = await provider.create(a_request())
    await provider.get(provider_id)
    [key] = [key for key in cluster.objects if key[0] == POD]
    cluster.objects[key]["metadata"]["resourceVersion"] = "999"
    await provider.delete(provider_id)
    await asyncio.sleep(3)
    assert cluster.pods() == ()


async def test_a_pod_that_was_taken_from_us_after_the_look_is_left_alone() -> None:
    cluster = a_cluster()
    provider = a_provider(cluster)
    provider_id = await provider.create(a_request())
    await provider.get(provider_id)
    [key] = [key for key in cluster.objects if key[0] == POD]
    cluster.objects[key]["metadata"]["resourceVersion"] = "999"
    cluster.objects[key]["metadata"]["labels"] = {}
    with pytest.raises(PermanentProviderError, match="foreign"):
        await provider.delete(provider_id)
    assert "deletionTimestamp" not in cluster.pods()[0]["metadata"]


async def test_a_foreign_pod_that_was_looked_at_is_left_alone() -> None:
    cluster = a_cluster()
    provider_id = await a_provider(cluster).create(a_request())
    other = KubernetesProvider(
        cluster, PodSettings(image="x"), cluster_id="cluster-2", namespace=None, clock=a_clock()
    )
    await other.get(provider_id)
    with pytest.raises(PermanentProviderError, match="foreign"):
        await other.delete(provider_id)
    assert "deletionTimestamp" not in cluster.pods()[0]["metadata"]


async def test_a_look_at_a_pod_on_its_way_out_hides_no_successor() -> None:
    cluster = a_cluster()
    provider = a_provider(cluster)
    request = a_request(credentials=None)
    provider_id = await provider.create(request)
    await provider.delete(provider_id)
    assert (await provider.get(provider_id)).state is InstanceState.TERMINATING
    await asyncio.sleep(3)
    await provider.create(request)
    await provider.delete(provider_id)
    await asyncio.sleep(3)
    assert cluster.pods() == ()


async def test_a_pod_that_went_after_the_look_is_no_error() -> None:
    cluster = a_cluster()
    provider = a_provider(cluster)
    provider_id = await provider.create(a_request())
    await provider.get(provider_id)
    cluster.objects = {key: one for key, one in cluster.objects.items() if key[0] != POD}
    await provider.delete(provider_id)
    assert cluster.named(CONFIG_MAP) == set()


async def test_an_outdated_pod_is_returned_and_not_touched() -> None:
    cluster = a_cluster()
    provider, request = a_provider(cluster), a_request()
    provider_id = await provider.create(request)
    labels = {**request.labels, "proxy-operator-spec-hash": "1" * 32}
    proxy = a_proxy(provider="kubernetes", meta={"uid": request.uid})
    changed = a_create_request(proxy, credentials=CREDENTIALS, labels=labels)
    assert await provider.create(changed) == provider_id
    assert (await provider.get(provider_id)).labels == request.labels


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (QUOTA, QuotaExceededError),
        (ForbiddenError('violates PodSecurity "restricted:latest"'), PermanentProviderError),
        (
            ForbiddenError(
                'pods "p" is forbidden: error looking up service account new/default:'
                ' serviceaccount "default" not found'
            ),
            TransientProviderError,
        ),
        (
            ForbiddenError(
                'pods "p" is forbidden: cannot set blockOwnerDeletion in this case because cannot'
                " find RESTMapping for APIVersion crawl.example.com/v1alpha1 Kind Proxy"
            ),
            TransientProviderError,
        ),
        (
            ForbiddenError('pods "p" is forbidden: status unknown for quota: q, resources: pods'),
            TransientProviderError,
        ),
        (InvalidError("Pod p", (FieldError("spec", "", "bad"),)), PermanentProviderError),
        (NotFoundError('namespaces "x" not found'), TransientProviderError),
        (ConflictError("the quota changed"), TransientProviderError),
        (UnavailableError("503"), TransientProviderError),
    ],
)
async def test_how_a_refused_pod_is_called(error: ObjectError, kind: type[ProviderError]) -> None:
    cluster = a_cluster()
    cluster.failures["create", POD] = error
    with pytest.raises(kind) as caught:
        await a_provider(cluster).create(a_request())
    assert type(caught.value) is kind
    assert caught.value.__cause__ is error


async def test_an_exhausted_quota_reads_the_same_whatever_is_used() -> None:
    cluster = a_cluster()
    cluster.failures["create", POD] = QUOTA
    with pytest.raises(QuotaExceededError) as caught:
        await a_provider(cluster).create(a_request())
    assert str(caught.value).endswith("requested pods=1, limited to pods=2")
    assert "small" in str(caught.value)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ForbiddenError("no"), EnvironmentProviderError),
        (UnavailableError("no"), TransientProviderError),
    ],
)
async def test_reads_and_deletes_never_latch(error: ObjectError, kind: type[ProviderError]) -> None:
    cluster = a_cluster()
    provider = a_provider(cluster)
    provider_id = await provider.create(a_request())
    cluster.failures["delete", POD] = error
    with pytest.raises(kind):
        await provider.delete(provider_id)
    cluster.failures["list", POD] = error
    with pytest.raises(kind):
        await provider.list_by_tag()
    cluster.failures["get", POD] = error
    with pytest.raises(kind):
        await provider.get(provider_id)


async def test_a_restricted_operator_lists_its_own_namespace() -> None:
    cluster = a_cluster()
    await a_provider(cluster).create(a_request())
    assert len((await a_provider(cluster, namespace="default").list_by_tag()).items) == 1
    assert (await a_provider(cluster, namespace="other").list_by_tag()).items == ()


async def test_an_image_that_cannot_be_pulled_is_told() -> None:
    cluster = a_cluster()
    cluster.waiting = {"reason": "ImagePullBackOff", "message": "Back-off 10s"}
    provider = a_provider(cluster, image="nowhere/squid:0")
    instance = await provider.get(await provider.create(a_request()))
    assert instance.state is InstanceState.PROVISIONING
    assert "nowhere/squid:0" in instance.message


async def test_an_apply_says_what_changes_and_no_value(caplog: pytest.LogCaptureFixture) -> None:
    cluster = a_cluster()
    provider, request = a_provider(cluster), a_request()
    await provider.create(request)
    (key,) = [key for key in cluster.objects if key[0] == CONFIG_MAP]
    cluster.objects[key]["metadata"]["labels"].pop("app.kubernetes.io/name")
    with caplog.at_level(logging.DEBUG, "proxy_operator"):
        await provider.create(request)
    (record,) = [one for one in caplog.records if one.getMessage() == "applying"]
    assert record.__dict__["changes"] == ["metadata.labels.app.kubernetes.io/name"]
    assert "app.kubernetes.io/name" in cluster.objects[key]["metadata"]["labels"]


async def test_a_survey_sees_every_clusters_pods_and_no_others() -> None:
    cluster = a_cluster()
    provider = a_provider(cluster)
    await provider.create(a_request())
    other = KubernetesProvider(
        cluster, PodSettings(image="x"), cluster_id="cluster-2", namespace=None, clock=a_clock()
    )
    for name, labels in (
        ("web", {"app": "web"}),
        ("half", {"app.kubernetes.io/managed-by": "proxy-operator"}),
    ):
        cluster.objects[POD, "default", name] = {
            "metadata": {"uid": name, "name": name, "namespace": "default", "labels": labels},
            "status": {"phase": "Running"},
        }
    writes = [*cluster.writes]
    assert (await other.list_by_tag()).items == ()
    listing = await other.list_all()
    assert listing == await provider.list_by_tag()
    assert len(listing.items) == 1
    assert cluster.writes == writes

"""The provider `kubernetes`: the order of calls behind each promise of the contract.

A rule a visitor must keep: a Pod is told from a same-named successor by its UID in every call
that removes something, and from a foreign one by its labels.
"""

import asyncio
from datetime import timedelta
from typing import Final

import msgspec

from proxy_operator.adapters.kube.resources import (
    CONFIG_MAP,
    POD,
    SECRET,
    DeleteOptions,
    Document,
)
from proxy_operator.adapters.providers.kubernetes import manifests, states
from proxy_operator.adapters.providers.kubernetes.config_maps import ConfigMaps
from proxy_operator.adapters.providers.kubernetes.errors import asking, making, or_none
from proxy_operator.adapters.providers.kubernetes.manifests import PodSettings
from proxy_operator.adapters.providers.kubernetes.ports import ResourceClient
from proxy_operator.adapters.providers.kubernetes.recent import Recent
from proxy_operator.adapters.providers.squid.sha512_crypt import new_salt
from proxy_operator.adapters.providers.squid.users import users_file
from proxy_operator.domain.instance import Instance, InstanceState
from proxy_operator.domain.names import CLUSTER_LABEL, SPEC_HASH_LABEL, UID_LABEL, is_owned_by
from proxy_operator.domain.proxy import ProxySpec
from proxy_operator.provisioning.contract import CreateRequest, InstanceList
from proxy_operator.provisioning.errors import (
    InstanceNotFoundError,
    PermanentProviderError,
    ProviderError,
    TransientProviderError,
)
from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.errors import AlreadyExistsError, ConflictError, NotFoundError
from proxy_operator.runtime.objects import ObjectKey

FIELD_MANAGER: Final = "proxy-operator"
APPEARS_WITHIN: Final = timedelta(minutes=1)
"""The API server gives up a request after --request-timeout, 60 s unless set."""
_LOOKED_AT: Final = 100
"""How many Pods are remembered from a look at them to their deletion, which comes at once."""
_UNFINISHED_AFTER: Final = timedelta(seconds=30)
"""A create has made the Pod's Secret by then, or never will: every call of it is shorter."""


class KubernetesProvider:
    """Squid Pods. `namespace` restricts listing, as the operator itself is restricted."""

    def __init__(
        self,
        client: ResourceClient,
        settings: PodSettings,
        *,
        cluster_id: str,
        namespace: str | None,
        clock: Clock,
    ) -> None:
        self._client = client
        self._settings = settings
        self._cluster_id = cluster_id
        self._namespace = namespace
        self._clock = clock
        self._configs = ConfigMaps(client, FIELD_MANAGER)
        self._looked_at = Recent[str, Document](_LOOKED_AT)

    @property
    def account(self) -> str:
        return ""

    @property
    def appears_within(self) -> timedelta:
        return APPEARS_WITHIN

    @property
    def asks_again_after(self) -> tuple[timedelta, ...]:
        return ()  # a create is answered once it is known what came of it

    def placements(self, spec: ProxySpec) -> tuple[str, ...]:  # noqa: ARG002 - the scheduler places
        return ("",)

    def provider_id(self, *, namespace: str, name: str, zone: str) -> str:  # noqa: ARG002 - one place
        return manifests.provider_id_of(namespace, name)

    async def check(self, request: CreateRequest) -> None:
        manifests.check(request)
        pod = await self._find(manifests.provider_id_of(request.namespace, request.name))
        if pod is not None:
            self._refuse_foreign(pod, request)

    async def create(self, request: CreateRequest) -> str:
        manifests.check(request)
        await self._configs.apply(manifests.config_map(request, self._settings))
        pod, is_new = await self._create_pod(request)
        if (
            is_new
            or pod["metadata"]["labels"].get(SPEC_HASH_LABEL) == (request.labels[SPEC_HASH_LABEL])
        ):
            await self._complete(pod, request, is_new=is_new)
        return manifests.provider_id_of(request.namespace, request.name)

    async def get(self, provider_id: str) -> Instance:
        pod = await self._find(provider_id)
        if pod is None:
            raise InstanceNotFoundError(f"there is no Pod {provider_id}")
        instance = states.instance_of(pod)
        if instance.state is not InstanceState.TERMINATING and self._is_of_cluster(pod):
            # As a rule the caller that deletes has looked just before.
            self._looked_at.note(provider_id, pod)
        if await self._is_unfinished(pod, instance):
            # Only a create knows the password: let the instance be replaced.
            return msgspec.structs.replace(instance, state=InstanceState.STOPPED, message="")
        return instance

    async def delete(self, provider_id: str) -> None:
        pod = await self._end(provider_id)
        config = None if pod is None else manifests.config_map_of(pod)
        if pod is not None and config is not None:
            await self._configs.delete(ObjectKey(pod["metadata"]["namespace"], config))

    async def list_by_tag(self) -> InstanceList:
        with asking("list Pods"):
            pods = await self._client.list(
                POD, namespace=self._namespace, labels={CLUSTER_LABEL: self._cluster_id}
            )
        return InstanceList(tuple(states.instance_of(pod) for pod in pods), complete=True)

    async def list_all(self) -> InstanceList:
        """Do what `provisioning.contract.Surveyor` promises."""
        with asking("list Pods"):
            pods = await self._client.list(
                POD, namespace=self._namespace, labels=manifests.MADE_BY_US
            )
        owned = (pod for pod in pods if UID_LABEL in pod["metadata"]["labels"])
        return InstanceList(tuple(states.instance_of(pod) for pod in owned), complete=True)

    async def _create_pod(self, request: CreateRequest) -> tuple[Document, bool]:
        """Return the Pod and whether it was made now; one of ours that exists is as good."""
        document = manifests.pod(request, self._settings)
        with making(f"create Pod {request.name}"):
            try:
                return await self._client.create(POD, document, FIELD_MANAGER), True
            except AlreadyExistsError:
                found = await or_none(
                    self._client.get(POD, ObjectKey(request.namespace, request.name))
                )
        if found is None:
            raise TransientProviderError(f"Pod {request.name} was just about to go")
        self._refuse_foreign(found, request)
        return found, False

    def _refuse_foreign(self, pod: Document, request: CreateRequest) -> None:
        labels = pod["metadata"].get("labels", {})
        if not is_owned_by(labels, uid=request.uid, cluster_id=self._cluster_id):
            raise PermanentProviderError(
                f"the name {request.name} is taken by a foreign instance:"
                f" a Pod in namespace {request.namespace} without this operator's labels"
            )

    async def _complete(self, pod: Document, request: CreateRequest, *, is_new: bool) -> None:
        """See to it that the Pod's Secret exists; a new Pod that cannot have it is taken back."""
        name = manifests.secret_of(pod)
        if name is None or request.credentials is None:
            return
        try:
            users = await asyncio.to_thread(users_file, request.credentials, new_salt())
            # Its name is new for every create; the same fault must read the same.
            with making(f"create the Secret of Pod {request.name}"):
                try:
                    await self._client.create(
                        SECRET, manifests.users_secret(pod, name, users), FIELD_MANAGER
                    )
                except AlreadyExistsError:
                    return  # it is from this very Pod's create: no other uses its name
        except TransientProviderError:
            raise
        except ProviderError:
            # "Nothing was made" is what these errors promise.
            if is_new:
                await self._delete_pod(pod)
            raise

    async def _find(self, provider_id: str) -> Document | None:
        place = manifests.parse_provider_id(provider_id)
        if place is None:
            return None
        with asking(f"read Pod {provider_id}"):
            return await or_none(self._client.get(POD, ObjectKey(*place)))

    async def _is_unfinished(self, pod: Document, instance: Instance) -> bool:
        """Tell whether the Pod waits for a file that no create will bring any more."""
        if not states.is_waiting_for_files(pod):
            return False
        if instance.created_at and self._clock.now() - instance.created_at < _UNFINISHED_AFTER:
            return False
        namespace = pod["metadata"]["namespace"]
        needed = (
            (SECRET, manifests.secret_of(pod)),
            (CONFIG_MAP, manifests.config_map_of(pod)),
        )
        for resource, name in needed:
            if name is None:
                continue
            with asking(f"read {resource.kind} {name}"):
                if await or_none(self._client.get(resource, ObjectKey(namespace, name))) is None:
                    return True
        return False

    async def _end(self, provider_id: str) -> Document | None:
        """Ask our Pod of that id to go and return it; None when it is gone or going."""
        pod = self._looked_at.take(provider_id)
        if pod is not None and await self._delete_pod(pod, is_unchanged=True):
            return pod
        pod = await self._find(provider_id)
        if pod is None:
            return None
        if not self._is_of_cluster(pod):
            raise PermanentProviderError(
                f"Pod {provider_id} is a foreign instance: it does not carry this operator's labels"
            )
        if states.state_of(pod) is InstanceState.TERMINATING:
            return None
        await self._delete_pod(pod)
        return pod

    def _is_of_cluster(self, pod: Document) -> bool:
        labels = pod["metadata"].get("labels", {})
        return bool(labels.get(CLUSTER_LABEL) == self._cluster_id)

    async def _delete_pod(self, pod: Document, *, is_unchanged: bool = False) -> bool:
        """Delete this Pod; False if it must be `is_unchanged` since it was read, and is not."""
        meta = pod["metadata"]
        version = meta["resourceVersion"] if is_unchanged else None
        with asking(f"delete Pod {meta['name']}"):
            try:
                await self._client.delete(
                    POD,
                    ObjectKey(meta["namespace"], meta["name"]),
                    DeleteOptions(uid=meta["uid"], resource_version=version),
                )
            except NotFoundError:
                pass
            except ConflictError:
                if is_unchanged:
                    return False
                raise
        return True

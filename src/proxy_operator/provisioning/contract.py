"""What a provider promises.

A visitor must keep this rule: an instance's `provider_id` is computed from its name and zone, so
an instance whose create reply was lost is found without having seen any answer.
"""

from datetime import timedelta
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from proxy_operator.domain.instance import Instance
from proxy_operator.domain.proxy import ProxySpec
from proxy_operator.domain.secret import Credentials


class CreateRequest(msgspec.Struct, kw_only=True, frozen=True):
    """Everything an instance is made of."""

    name: str
    """`domain.names.instance_name` of the Proxy's UID."""
    namespace: str
    proxy_name: str
    """The Proxy's own name: for descriptions and owner references, never for identity."""
    uid: str
    request_id: str
    zone: str
    """One of `placements(spec)`."""
    spec: ProxySpec
    labels: dict[str, str]
    """Owner labels; they must be part of the create call itself."""
    user_data: bytes | None = None
    credentials: Credentials | None = None
    is_repeated: bool = False
    """This very create, by its request id, was accepted before; see `asks_again_after`."""

    def __repr__(self) -> str:
        return f"CreateRequest({self.namespace}/{self.proxy_name}, {self.name}, zone={self.zone!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.name), ("proxy_name", self.proxy_name), ("zone", self.zone)]


class InstanceList(NamedTuple):
    """Instances that carry our cluster label."""

    items: tuple[Instance, ...]
    complete: bool
    """False: something could not be read, so absence proves nothing."""


class Provider(Protocol):
    """Five calls, and five facts that need no call."""

    @property
    def account(self) -> str:
        """Return whose instances the ids are, such as a cloud project; empty if none is chosen.

        An operator that works in another account would take every instance for gone.
        """

    @property
    def appears_within(self) -> timedelta:
        """How long after a create was sent the instance may still come into being.

        Deletion of a Proxy whose create got no answer waits so long before it takes NotFound
        for the truth.
        """

    @property
    def asks_again_after(self) -> tuple[timedelta, ...]:
        """When, since an accepted create, to ask for it again while no instance is to be seen.

        For a provider that learns only after accepting a create that it came to nothing: the same
        request again, `is_repeated`, then raises what became of the first. Empty: never.
        """

    def placements(self, spec: ProxySpec) -> tuple[str, ...]:
        """Return zones in the order to try them; `("",)` when the provider knows none.

        Never empty and never raises: what is missing from the spec is for `create` to say.
        """

    def provider_id(self, *, namespace: str, name: str, zone: str) -> str:
        """Return the id that an instance of this name in this zone has, or would have."""

    async def check(self, request: CreateRequest) -> None:
        """Raise what a create of this request would certainly raise; change nothing.

        PermanentProviderError, EnvironmentProviderError, QuotaExceededError, StockOutError: do
        not make room for this instance, it would not come. TransientProviderError: it could not
        be told. No answer is no promise. What our present instance of that name holds (its name,
        its port, its share of a quota) counts as free: it is asked about before it goes.
        """

    async def create(self, request: CreateRequest) -> str:
        """Ask for an instance and return its provider id. Returning does not mean it runs.

        Idempotent by name: when an instance of that name with our owner labels exists, its id is
        returned and nothing is made. A foreign one is a PermanentProviderError. QuotaExceededError,
        StockOutError, PermanentProviderError, EnvironmentProviderError: nothing was made.
        TransientProviderError: something may have been made. A repeated create makes nothing
        beside what the first one made, and is refused only for what came of the first.
        """

    async def get(self, provider_id: str) -> Instance:
        """Return the instance as it is now. InstanceNotFoundError when there is none."""

    async def delete(self, provider_id: str) -> None:
        """Ask for the instance to go. Returning does not mean it has gone.

        The caller repeats `get` until InstanceNotFoundError says so; only then may it drop the
        finalizer. Deleting what is gone is no error.
        """

    async def list_by_tag(self) -> InstanceList:
        """Return all instances with our cluster label, in every zone and namespace."""


@runtime_checkable
class Surveyor(Protocol):
    """Sees the instances of other operators too: for people who look for lost ones.

    Never a ground to delete anything: whose they are is for a person to say.
    """

    async def list_all(self) -> InstanceList:
        """Return all instances with an owner label, whatever its cluster; change nothing.

        The errors of `Provider.list_by_tag`.
        """

"""What a pass works with: its surroundings, and the draft that steps change.

Two facts hold after every step: Provisioned is True exactly when the address of a managed proxy
is set, and without a provider id the reason is none that says an instance was seen.
"""

import contextlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from proxy_operator.controllers.ports import (
    EventRecorder,
    Fingerprinter,
    HealthReader,
    ProviderRegistry,
)
from proxy_operator.domain.condition import (
    Condition,
    ConditionStatus,
    ConditionType,
    HealthyReason,
    ProvisionedReason,
    find,
    is_true,
    with_condition,
)
from proxy_operator.domain.event import EventKind
from proxy_operator.domain.instance import Intent, decode_intent
from proxy_operator.domain.names import (
    FINALIZER,
    INTENT_ANNOTATION,
    SPEC_HASH_ANNOTATION,
    instance_name,
    is_owned_by,
)
from proxy_operator.domain.proxy import Proxy
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.credentials import MadeWith, SecretReader
from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.objects import (
    MetadataPatch,
    ObjectClient,
    ObjectKey,
    Preconditions,
    key_of,
)
from proxy_operator.runtime.store import Lister

# Reasons that are given only after the provider showed the instance.
_SEEN: Final = {
    ProvisionedReason.CREATED,
    ProvisionedReason.REPLACING,
    ProvisionedReason.DELETING,
}


@dataclass(frozen=True, slots=True)
class Intervals:
    """How long to wait for what."""

    provisioning_poll: timedelta = timedelta(seconds=5)
    deletion_poll: timedelta = timedelta(seconds=5)
    drift_poll: timedelta = timedelta(seconds=60)
    quota_retry: timedelta = timedelta(minutes=5)
    requeue_now: timedelta = timedelta(seconds=1)
    appear_deadline: timedelta = timedelta(minutes=3)


@dataclass(frozen=True, slots=True)
class Ports:
    """Who answers what the reconciler asks."""

    proxies: Lister[Proxy]
    secrets: SecretReader
    client: ObjectClient
    providers: ProviderRegistry
    health: HealthReader
    events: EventRecorder
    fingerprints: Fingerprinter


@dataclass(frozen=True, slots=True)
class Surroundings:
    """All that outlives a pass."""

    ports: Ports
    clock: Clock
    cluster_id: str
    intervals: Intervals = Intervals()
    seen: dict[str, str] = field(default_factory=dict)
    """UID to the provider id that was seen before it ran. Lost on restart: then a vanished
    instance is told from one still to appear by the deadline alone."""
    asked: dict[str, tuple[str, int]] = field(default_factory=dict)
    """UID to request id, and how often it was asked again what came of that create. Lost on
    restart: then it is asked once more."""
    made_with: MadeWith = field(default_factory=MadeWith)


def whole_seconds(moment: datetime) -> datetime:
    """Return the moment as the store keeps it, so that the same status again is no write."""
    return moment.replace(microsecond=0)


@dataclass(slots=True)
class Pass:
    """One pass over one Proxy."""

    around: Surroundings
    stored: Proxy
    proxy: Proxy
    """Draft of `stored`: steps change its status."""
    now: datetime
    is_gone: bool = False
    """The last finalizer was dropped: there is nothing left to write to."""

    @property
    def ports(self) -> Ports:
        return self.around.ports

    @property
    def intervals(self) -> Intervals:
        return self.around.intervals

    @property
    def key(self) -> ObjectKey:
        return key_of(self.stored)

    @property
    def uid(self) -> str:
        return self.stored.metadata.uid

    @property
    def instance_name(self) -> str:
        return instance_name(self.uid)

    @property
    def recorded_hash(self) -> str:
        """Spec hash of the last create, or empty."""
        return self.proxy.metadata.annotations.get(SPEC_HASH_ANNOTATION, "")

    @property
    def provisioned(self) -> Condition | None:
        return find(self.proxy.status.conditions, ConditionType.PROVISIONED)

    @property
    def is_provisioned(self) -> bool:
        return is_true(self.proxy.status.conditions, ConditionType.PROVISIONED)

    @property
    def has_appeared(self) -> bool:
        """The provider has shown the instance of the last create: NotFound means it is gone."""
        return self.provisioned is not None and self.provisioned.reason in _SEEN

    @property
    def first_look(self) -> timedelta:
        """When to look for the first time after something was asked of a provider.

        Soon: what answers within a second should not wait for a poll.
        """
        return self.intervals.requeue_now

    def is_ours(self, labels: dict[str, str]) -> bool:
        """Both owner labels are this Proxy's and this operator's."""
        return is_owned_by(labels, uid=self.uid, cluster_id=self.around.cluster_id)

    def intent(self, provider: Provider) -> Intent | None:
        """Return the recorded intent.

        One that somebody damaged is taken as a create of unknown outcome anywhere.
        """
        with contextlib.suppress(ValueError):
            return decode_intent(self.proxy.metadata.annotations.get(INTENT_ANNOTATION))
        first, *others = provider.placements(self.proxy.spec)
        return Intent(
            attempt=1,
            request_id="",
            spec_hash="",
            created_at=self.proxy.metadata.creation_timestamp or self.now,
            zone=first,
            zones=tuple(others),
        )

    def id_in(self, provider: Provider, zone: str) -> str:
        """Return the id that the instance has, or would have, in that zone."""
        return provider.provider_id(
            namespace=self.key.namespace, name=self.instance_name, zone=zone
        )

    def set_condition(
        self, kind: ConditionType, status: ConditionStatus, reason: str, message: str
    ) -> None:
        """Stage a condition at this generation."""
        self.proxy.status.conditions = with_condition(
            self.proxy.status.conditions,
            kind,
            status=status,
            reason=reason,
            message=message,
            observed_generation=self.proxy.metadata.generation,
            now=whole_seconds(self.now),
        )

    def set_unprovisioned(self, reason: ProvisionedReason, message: str) -> None:
        """Stage Provisioned=False; the address goes, and the verdict on it too."""
        self.set_condition(ConditionType.PROVISIONED, ConditionStatus.FALSE, reason, message)
        status = self.proxy.status
        status.ip = status.port = status.latency_millis = None
        self.set_condition(
            ConditionType.HEALTHY,
            ConditionStatus.UNKNOWN,
            HealthyReason.NOT_PROVISIONED,
            "there is no instance to probe",
        )

    def forget_instance(self, reason: ProvisionedReason, message: str) -> None:
        """Stage that there is no instance any more."""
        self.proxy.status.provider_id = None
        self.forget_waiting()
        self.set_unprovisioned(reason, message)

    def forget_waiting(self) -> None:
        """Drop what is remembered of an instance only until it runs."""
        self.around.seen.pop(self.uid, None)
        self.around.asked.pop(self.uid, None)

    def tell(self, event: EventKind, message: str) -> None:
        """Emit an Event on this Proxy."""
        self.ports.events.record(self.stored, event, message)

    async def record_intent(self, intent: Intent) -> None:
        """Write the intent, with finalizer and spec hash, in one patch."""
        finalizers = self.proxy.metadata.finalizers
        await self.patch_metadata(
            MetadataPatch(
                annotations={
                    INTENT_ANNOTATION: intent.encode(),
                    SPEC_HASH_ANNOTATION: intent.spec_hash,
                },
                finalizers=finalizers if FINALIZER in finalizers else (*finalizers, FINALIZER),
            )
        )

    async def patch_metadata(self, patch: MetadataPatch) -> None:
        """Write metadata if the object is still the one this pass read (ConflictError)."""
        meta = self.proxy.metadata
        self.stored = await self.ports.client.patch_metadata(
            Proxy, self.key, Preconditions(meta.uid, meta.resource_version), patch
        )
        self.proxy.metadata = self.stored.metadata

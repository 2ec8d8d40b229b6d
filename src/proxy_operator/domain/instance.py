"""An instance: the real thing a provider made, and the intent written before asking for it."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta


class InstanceState(StrEnum):
    """What a provider says of an instance."""

    PROVISIONING = "Provisioning"
    RUNNING = "Running"
    STOPPED = "Stopped"
    TERMINATING = "Terminating"


class Instance(msgspec.Struct, kw_only=True, frozen=True):
    """One instance as its provider sees it now."""

    provider_id: str
    state: InstanceState
    ip: str | None = None
    """Address clients connect to; set when the state is Running."""
    port: int | None = None
    zone: str = ""
    labels: dict[str, str] = {}
    """Owner labels (`domain.names`), as they were set in the create call."""
    created_at: datetime | None = None
    """None when the provider does not know; GC then takes it as too young to kill."""
    message: str = ""
    """What keeps it from starting or ended it, for people; the same words as long as it is so."""


class Outcome(StrEnum):
    """How a create ended, as far as it is known to have ended without an instance."""

    UNKNOWN = ""
    """Accepted, unanswered, or not sent: an instance may exist or still come into being."""
    QUOTA = "quota"
    STOCK_OUT = "stock-out"
    REJECTED = "rejected"
    """Refused for good: not tried again for the same generation and spec hash."""
    DENIED = "denied"
    """Refused for what is wrong around the operator: rights, an engine."""
    NEVER_APPEARED = "never-appeared"
    """Accepted, but no instance came of it in time. It may still come."""
    GONE = "gone"
    """An instance came of it, and is no more."""


# The provider said that it made nothing.
REFUSED: Final = frozenset({Outcome.QUOTA, Outcome.STOCK_OUT, Outcome.REJECTED, Outcome.DENIED})
# Nothing more will come of it.
SETTLED: Final = REFUSED | {Outcome.GONE}
# Another zone may do better.
ROTATES: Final = frozenset({Outcome.STOCK_OUT, Outcome.NEVER_APPEARED})


class Intent(
    msgspec.Struct,
    kw_only=True,
    frozen=True,
    omit_defaults=True,
    rename={
        "request_id": "requestID",
        "spec_hash": "specHash",
        "created_at": "time",
        "settled_at": "settledTime",
        "retry_at": "retryTime",
        "unsettled_at": "unsettledTime",
        "cluster_id": "clusterID",
    },
):
    """Record of the last create that was, or was about to be, sent.

    Kept in the annotation `crawl.example.com/intent`, written before the create call, so that an
    instance whose create or status write was lost can be found again.
    """

    attempt: Annotated[int, Meta(ge=1)]
    """1 for the first try since an instance last ran; picks the zone and the wait."""
    request_id: str
    """Fresh for every create; the same while a create that got no answer is sent again."""
    spec_hash: str
    created_at: Annotated[datetime, Meta(tz=True)]
    """When the create was last sent."""
    account: str = ""
    """The cloud project, or the like, that the create was sent to."""
    cluster_id: str = ""
    """That of the operator which sent it, as the instance's label has it."""
    zone: str = ""
    zones: tuple[str, ...] = ()
    """Every other zone in which an earlier attempt may still have left an instance."""
    outcome: Outcome = Outcome.UNKNOWN
    settled_at: Annotated[datetime, Meta(tz=True)] | None = None
    """When `outcome` became known."""
    retry_at: Annotated[datetime, Meta(tz=True)] | None = None
    """When to try again, if whoever refused said so."""
    unsettled_at: Annotated[datetime, Meta(tz=True)] | None = None
    """When a create was last sent that got no answer, before this one: an instance may come of
    it too, whatever becomes of this one."""

    def settled(
        self, outcome: Outcome, now: datetime, retry_at: datetime | None = None
    ) -> "Intent":
        """Return the record of how this create ended."""
        return msgspec.structs.replace(self, outcome=outcome, settled_at=now, retry_at=retry_at)

    def unsettled(self) -> "Intent":
        """Return the record when an instance was found and this create has got no answer."""
        return msgspec.structs.replace(self, unsettled_at=self.created_at)

    def ran(self, *, are_others_clear: bool) -> "Intent":
        """Return the record once its instance ran: attempts count anew.

        Other zones are forgotten when nothing can come up in them any more.
        """
        return msgspec.structs.replace(
            self,
            attempt=1,
            zones=() if are_others_clear else self.zones,
            outcome=Outcome.UNKNOWN,
            settled_at=None,
            retry_at=None,
        )

    def encode(self) -> str:
        """Return the annotation's text."""
        return msgspec.json.encode(self).decode()


def decode_intent(text: str | None) -> Intent | None:
    """Read the annotation; None when absent. ValueError when somebody damaged it."""
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=Intent)
    except msgspec.MsgspecError as err:
        raise ValueError(f"annotation is not a recorded intent: {err}") from err


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """Encode with sorted keys, so that equal values give equal bytes."""
    return msgspec.json.encode(value, order="sorted")

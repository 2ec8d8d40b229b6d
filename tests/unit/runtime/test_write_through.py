import asyncio
from contextlib import suppress
from typing import Any

import pytest

from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.clock import LoopClock
from proxy_operator.runtime.errors import ConflictError, NotFoundError
from proxy_operator.runtime.informer import Informer
from proxy_operator.runtime.objects import (
    Applied,
    ApplyOutcome,
    MetadataPatch,
    ObjectClient,
    ObjectKey,
    Preconditions,
)
from proxy_operator.runtime.write_through import WriteThrough
from tests.builders import EPOCH, a_secret
from tests.unit.runtime.script import HANG, Script, a_list, an_object, modified

A = ObjectKey("default", "a")


class Replies(Script):
    """Answers every write with `reply`."""

    reply: Any = None
    delay = 0.0

    async def create(self, *_: Any) -> Any:
        await asyncio.sleep(self.delay)
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply

    patch_metadata = patch_status = apply = delete = create


class Written:
    """A client over an informer that knows `a` at version 5; events as `+version`, `~…`, `-…`."""

    def __init__(self) -> None:
        self.replies = Replies()
        self.informer = Informer(self.replies, Proxy, clock=LoopClock(EPOCH))
        self.client: ObjectClient = WriteThrough(self.replies, {Proxy: self.informer})
        self.informer.observe(an_object("a", 5))
        self.told: list[str] = []
        self.informer.store.add_handler(
            lambda e: self.told.append(
                ("+" if e.old is None else "-" if e.new is None else "~")
                + (e.new or e.old).metadata.resource_version  # type: ignore[union-attr] # one is
                + (" echo" if e.is_echo else "")
            )
        )
        self.told.clear()


async def test_created_object_is_in_the_store():
    written = Written()
    written.replies.reply = an_object("b", 6)
    assert await written.client.create(an_object("b", 0)) is written.replies.reply
    assert written.told == ["+6"]


async def test_status_write_is_an_echo_when_the_store_knew_what_it_was_based_on():
    written = Written()
    written.replies.reply = an_object("a", 6)
    await written.client.patch_status(an_object("a", 5))
    assert written.told == ["~6 echo"]


@pytest.mark.parametrize("base", [an_object("a", 4), an_object("a", 6), an_object("a", 5, "old")])
async def test_status_write_is_no_echo_when_it_carries_changes_the_store_never_saw(base):
    written = Written()
    written.replies.reply = an_object("a", 7)
    await written.client.patch_status(base)
    assert written.told == ["~7"]


async def test_metadata_write_is_an_echo_too():
    written = Written()
    written.replies.reply = an_object("a", 6, labels={"x": "y"})
    await patch_metadata(written)
    assert written.told == ["~6 echo"]


@pytest.mark.looptime(start=0)
@pytest.mark.parametrize(
    ("events", "reply", "told"),
    [
        ((6,), an_object("a", 6), ["~6 echo"]),
        ((6, 7), an_object("a", 6), ["~6 echo", "~7"]),
        ((6,), ConflictError("changed"), ["~6"]),
    ],
)
async def test_events_that_overtake_the_reply_of_a_write_wait_for_it(events, reply, told):
    written = Written()
    written.replies.lists.append(a_list(5, an_object("a", 5)))
    written.replies.streams.append((1.0, *(modified(an_object("a", v)) for v in events), HANG))
    written.replies.reply, written.replies.delay = reply, 2.0
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(written.informer.run())
        await written.informer.wait_for_sync()
        with suppress(ConflictError):
            await patch_metadata(written)
        watching.cancel()
    assert written.told == told


async def patch_metadata(written: Written) -> None:
    await written.client.patch_metadata(
        Proxy, A, Preconditions("uid-a", "5"), MetadataPatch(finalizers=[])
    )


async def test_removing_the_last_finalizer_of_a_deleting_object_removes_it():
    written = Written()
    written.replies.reply = an_object("a", 6, deletion_timestamp=EPOCH)
    await patch_metadata(written)
    assert written.told == ["-5"]


async def test_deleting_object_with_another_finalizer_stays():
    written = Written()
    written.replies.reply = an_object("a", 6, deletion_timestamp=EPOCH, finalizers=("other",))
    await patch_metadata(written)
    assert written.told == ["~6 echo"]


async def test_applied_object_is_in_the_store():
    written = Written()
    written.replies.reply = Applied(an_object("a", 6), ApplyOutcome.CONFIGURED)
    await written.client.apply({"kind": "Proxy"})
    assert written.told == ["~6"]


@pytest.mark.parametrize("error", [ConflictError("changed"), NotFoundError("gone")])
async def test_failed_write_changes_nothing(error):
    written = Written()
    written.replies.reply = error
    with pytest.raises(type(error)):
        await written.client.patch_status(an_object("a", 5))
    with pytest.raises(type(error)):
        await patch_metadata(written)
    assert written.told == []


async def test_kind_without_informer_is_written_all_the_same():
    written = Written()
    written.replies.reply = a_secret()
    assert await written.client.create(a_secret()) is written.replies.reply
    assert await written.client.patch_status(a_secret()) is written.replies.reply
    assert written.told == []

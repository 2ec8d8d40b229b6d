"""Another process at the same store: `writer_process.py STORE apply|count|pace N`.

It says when it is ready, and begins when it is sent a line.
"""

import asyncio
import sys
import time
from pathlib import Path

from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.object_store import SqliteObjectClient
from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.errors import ConflictError
from proxy_operator.runtime.objects import MetadataPatch, ObjectKey, Preconditions
from proxy_operator.testing.fake_objects import DecodingAdmission
from proxy_operator.testing.object_client_contract import a_manifest


def say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def apply(client: SqliteObjectClient, count: int) -> None:
    """Say the name of each object once it is acknowledged; many are under way at once."""

    async def one(name: str) -> None:
        await client.apply(a_manifest("default", name))
        say(name)

    for start in range(0, count, 4):
        await asyncio.gather(*(one(f"{Path.cwd().name}-{start + n}") for n in range(4)))


async def count(client: SqliteObjectClient, count: int) -> None:
    """Count up in an annotation; say how often somebody else was faster."""
    conflicts = 0
    for _ in range(count):
        while True:
            now = await client.get(Proxy, ObjectKey("default", "p1"))
            patch = MetadataPatch(annotations={"n": str(int(now.metadata.annotations["n"]) + 1)})
            seen = Preconditions(now.metadata.uid, now.metadata.resource_version)
            try:
                await client.patch_metadata(Proxy, ObjectKey("default", "p1"), seen, patch)
            except ConflictError:
                conflicts += 1
            else:
                break
    say(conflicts)


async def pace(client: SqliteObjectClient, count: int) -> None:
    """Write one object at a time, with pauses, and say when it was acknowledged."""
    for number in range(count):
        await asyncio.sleep(0.03)
        await client.apply(a_manifest("default", f"p{number}"))
        say(time.monotonic())


async def main(store: str, task: str, number: str) -> None:
    database = Database(Path(store))
    await database.open(create=False)
    client = SqliteObjectClient(database, DecodingAdmission(), SystemClock())
    say("ready")
    sys.stdin.readline()
    await {"apply": apply, "count": count, "pace": pace}[task](client, int(number))
    await database.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

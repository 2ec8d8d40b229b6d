"""Two processes at one store, and one that is killed: real ones, with bounded waits."""

import asyncio
import random
import sqlite3
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from proxy_operator.adapters.embedded.data_dir import DataDir
from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.object_store import SqliteObjectClient
from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.testing.fake_objects import DecodingAdmission
from proxy_operator.testing.object_client_contract import a_manifest, a_proxy

SCRIPT = Path(__file__).with_name("writer_process.py")
WAIT_SECONDS = 60


@asynccontextmanager
async def a_writer(data_dir: DataDir, task: str, number: int, cwd: Path):
    """Another process, ready to begin; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SCRIPT),
        str(data_dir.store_path),
        task,
        str(number),
        stdin=PIPE,
        stdout=PIPE,
        cwd=cwd,
    )
    try:
        assert await line_of(process) == "ready"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def begin(*processes: Process) -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")


async def line_of(process: Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(WAIT_SECONDS):
        return (await process.stdout.readline()).decode().strip()


@pytest.mark.parametrize("seed", range(3))
async def test_what_was_acknowledged_survives_kill_9(data_dir: DataDir, tmp_path: Path, seed: int):
    database = Database(data_dir.store_path)
    await database.open(create=True)
    await database.close()
    rng = random.Random(seed)
    async with a_writer(data_dir, "apply", 100_000, tmp_path) as process:
        begin(process)
        acknowledged = [await line_of(process)]
        await asyncio.sleep(rng.uniform(0.0, 0.3))
        process.kill()
        rest, _ = await process.communicate()
        # The last line may be cut off.
        acknowledged += rest.decode().split("\n")[:-1]

    connection = sqlite3.connect(data_dir.store_path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    await check_world(data_dir, acknowledged)


async def check_world(data_dir: DataDir, acknowledged: list[str]) -> None:
    database = Database(data_dir.store_path)
    await database.open(create=False)
    client = SqliteObjectClient(database, DecodingAdmission(), SystemClock())
    listed = await client.list(Proxy)
    events = []
    stream = client.watch(Proxy, "1")
    async with asyncio.timeout(WAIT_SECONDS):
        async for event in stream:
            events.append(event)
            if event.resource_version == listed.resource_version:
                break
    await stream.aclose()
    await database.close()
    assert set(acknowledged) <= {o.metadata.name for o in listed.items}
    assert [e.object for e in events] == sorted(
        listed.items, key=lambda o: int(o.metadata.resource_version)
    )


async def test_two_writers_lose_nothing(
    data_dir: DataDir, client: SqliteObjectClient, tmp_path: Path
):
    await client.create(a_proxy("default", annotations={"n": "0"}))
    async with (
        a_writer(data_dir, "count", 60, tmp_path) as one,
        a_writer(data_dir, "count", 60, tmp_path) as other,
    ):
        begin(one, other)
        conflicts = [int(await line_of(one)), int(await line_of(other))]
    counted = await client.get(Proxy, ObjectKey("default", "p1"))
    assert counted.metadata.annotations == {"n": "120"}
    assert int(counted.metadata.resource_version) == 122
    assert sum(conflicts) > 0


async def test_writes_of_another_process_are_seen_soon(
    data_dir: DataDir, client: SqliteObjectClient, tmp_path: Path
):
    seen_at: list[float] = []
    names: list[str] = []
    written_at: list[float] = []
    listed = await client.list(Proxy)
    async with a_writer(data_dir, "pace", 20, tmp_path) as process:
        begin(process)
        async with asyncio.timeout(WAIT_SECONDS):
            async for event in client.watch(Proxy, listed.resource_version):
                assert event.object is not None
                seen_at.append(asyncio.get_running_loop().time())
                names.append(event.object.metadata.name)
                if len(names) == 20:
                    break
        written_at = [float(await line_of(process)) for _ in range(20)]
    assert names == [f"p{n}" for n in range(20)]
    lags = sorted(seen - written for seen, written in zip(seen_at, written_at, strict=True))
    assert lags[18] < 0.3


async def test_a_writer_that_never_pauses_leaves_room_for_another(
    data_dir: DataDir, client: SqliteObjectClient, tmp_path: Path
):
    async with a_writer(data_dir, "apply", 100_000, tmp_path) as process:
        begin(process)
        await line_of(process)
        async with asyncio.timeout(WAIT_SECONDS / 4):
            for number in range(5):
                await client.apply(a_manifest("default", f"mine-{number}"))
        assert process.returncode is None

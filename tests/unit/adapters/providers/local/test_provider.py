"""The provider on its loop: what the machine says, and that nothing blocks. The contract suite
holds the rest.
"""

import asyncio
import errno
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from proxy_operator.adapters.providers.local import programs
from proxy_operator.adapters.providers.local.provider import LocalProvider
from proxy_operator.domain.instance import InstanceState
from proxy_operator.domain.proxy import LocalBlock, LocalEngine, Scheme
from proxy_operator.provisioning.contract import CreateRequest
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    InstanceNotFoundError,
    PermanentProviderError,
    TransientProviderError,
)
from proxy_operator.runtime.clock import SystemClock
from tests.builders import a_create_request
from tests.local_instances import names_in, open_descriptors, process_of
from tests.unit.adapters.providers.local.conftest import a_request


@pytest.fixture
def provider(root: Path) -> LocalProvider:
    return LocalProvider(root, bind="127.0.0.1", cluster_id="cluster-1", clock=SystemClock())


@pytest.fixture
def stopped(root: Path) -> Iterator[list[int]]:
    """Processes to wake, so that they can be ended."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


async def test_the_loop_goes_on_while_processes_start_and_end(provider: LocalProvider):
    gaps: list[float] = []

    async def tick() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - before)

    async with asyncio.TaskGroup() as tasks:
        ticking = tasks.create_task(tick())
        await provider.delete(await provider.create(a_create_request()))
        ticking.cancel()
    assert len(gaps) > 5
    assert max(gaps) < 0.25


async def test_after_a_delete_a_look_soon_sees_the_end(provider: LocalProvider, root: Path):
    provider_id = await provider.create(a_create_request())
    await provider.delete(provider_id)
    for _ in range(500):
        try:
            instance = await provider.get(provider_id)
        except InstanceNotFoundError:
            break
        assert instance.state is InstanceState.TERMINATING
        await asyncio.sleep(0.02)
    assert names_in(root) == []


async def test_a_delete_does_not_wait_for_a_process_that_hangs(
    provider: LocalProvider,
    root: Path,
    stopped: list[int],
):
    request = a_create_request()
    provider_id = await provider.create(request)
    stopped.append(process_of(root / request.name))
    os.kill(stopped[0], signal.SIGSTOP)
    started = time.monotonic()
    await provider.delete(provider_id)
    assert time.monotonic() - started < 1
    assert (await provider.get(provider_id)).state is InstanceState.TERMINATING


@pytest.mark.parametrize("provider_id", ["", "local/..", "zones/a/instances/b", "local/"])
async def test_an_id_that_is_not_ours_names_nothing(provider: LocalProvider, provider_id: str):
    with pytest.raises(InstanceNotFoundError):
        await provider.get(provider_id)
    await provider.delete(provider_id)


async def test_a_refused_request_touches_nothing(provider: LocalProvider, root: Path):
    with pytest.raises(PermanentProviderError):
        await provider.create(a_create_request(user_data=b"x"))
    assert not await asyncio.to_thread(root.exists)


@pytest.fixture
def held_port() -> Iterator[int]:
    """A port somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def impossible_requests(held_port: int) -> dict[str, CreateRequest]:
    return {
        "squid": a_request(local=LocalBlock(engine=LocalEngine.SQUID)),
        "egress": a_request(local=LocalBlock(egress_address="203.0.113.7")),
        "port": a_request(port=held_port),
        "scheme": a_request(scheme=Scheme.HTTPS),
        "cloud-init": a_request(user_data=b"x"),
    }


@pytest.mark.parametrize("case", ["squid", "egress", "port", "scheme", "cloud-init"])
async def test_a_check_says_what_a_create_says_and_starts_nothing(
    provider: LocalProvider,
    root: Path,
    held_port: int,
    case: str,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(programs, "SQUIDS", ())  # there may be one on this machine
    request = impossible_requests(held_port)[case]
    with pytest.raises((EnvironmentProviderError, PermanentProviderError)) as checked:
        await provider.check(request)
    assert not await asyncio.to_thread(root.exists)
    with pytest.raises(type(checked.value)) as created:
        await provider.create(request)
    assert str(created.value) == str(checked.value)


async def test_only_the_own_port_counts_as_free(provider: LocalProvider):
    mine, other = a_request(), a_request()
    for request in (mine, other):
        await provider.create(request)
    port = (await provider.get(await provider.create(mine))).port
    on_port = msgspec.structs.replace(mine.spec, port=port)
    await provider.check(msgspec.structs.replace(mine, spec=on_port))
    with pytest.raises(EnvironmentProviderError, match=f"port {port}: Address already in use"):
        await provider.check(msgspec.structs.replace(other, spec=on_port))


async def test_a_root_that_cannot_be_made_is_the_surroundings_fault(tmp_path: Path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    for root in (blocker, blocker / "below"):
        provider = LocalProvider(root, bind="127.0.0.1", cluster_id="c", clock=SystemClock())
        with pytest.raises(EnvironmentProviderError, match=str(root)):
            await provider.create(a_create_request())


async def test_what_may_pass_is_transient(
    provider: LocalProvider, root: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "posix_spawn", refuse)
    before = open_descriptors()
    with pytest.raises(TransientProviderError, match="temporarily unavailable"):
        await provider.create(a_create_request())
    assert names_in(root) == []
    assert open_descriptors() == before


async def test_making_one_touches_no_disk(provider: LocalProvider, root: Path):
    assert (await provider.list_by_tag()) == ((), True)
    assert not await asyncio.to_thread(root.exists)


async def test_a_create_that_was_given_up_makes_nothing(provider: LocalProvider, root: Path):
    request = a_create_request()
    with (
        provider._instances._turn(request.name),  # its thread waits here when its caller leaves
        pytest.raises(TimeoutError),
    ):
        async with asyncio.timeout(0.05):
            await provider.create(request)
    await asyncio.get_running_loop().shutdown_default_executor()
    assert names_in(root) == []

import asyncio
import fcntl
import os
import sys
from asyncio.subprocess import PIPE

import pytest

from proxy_operator.adapters.embedded.data_dir import DataDir
from proxy_operator.adapters.embedded.errors import DataDirError
from proxy_operator.adapters.embedded.operator_lock import OperatorLock, is_operator_running

HOLDER = """
import asyncio, sys
from pathlib import Path
from proxy_operator.adapters.embedded.data_dir import DataDir
from proxy_operator.adapters.embedded.operator_lock import OperatorLock
async def main():
    await OperatorLock(DataDir(Path(sys.argv[1]))).acquire()
    print("held", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


async def test_one_operator_at_a_time(data_dir: DataDir):
    assert not is_operator_running(data_dir)
    async with OperatorLock(data_dir):
        assert is_operator_running(data_dir)
        with pytest.raises(DataDirError, match=rf"another operator \(pid {os.getpid()}\) is run"):
            await OperatorLock(data_dir).acquire()
        assert is_operator_running(data_dir)
    assert not is_operator_running(data_dir)
    async with OperatorLock(data_dir):
        assert is_operator_running(data_dir)


async def test_asking_does_not_keep_an_operator_out(data_dir: DataDir):
    async with OperatorLock(data_dir):
        pass
    # What somebody who asks does, caught in the act.
    descriptor = os.open(data_dir.lock_path, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    asyncio.get_running_loop().call_later(0.03, os.close, descriptor)
    async with OperatorLock(data_dir):
        assert is_operator_running(data_dir)


async def test_a_killed_operator_leaves_no_lock(data_dir: DataDir):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, str(data_dir.path), stdout=PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(60):
        assert await process.stdout.readline() == b"held\n"
        with pytest.raises(DataDirError, match=rf"\(pid {process.pid}\)"):
            await OperatorLock(data_dir).acquire()
        process.kill()
        await process.communicate()
    assert not is_operator_running(data_dir)


async def test_a_lock_that_cannot_be_opened(data_dir: DataDir):
    data_dir.lock_path.mkdir()
    with pytest.raises(DataDirError, match=r"lock file .* cannot be opened: Is a directory"):
        await OperatorLock(data_dir).acquire()

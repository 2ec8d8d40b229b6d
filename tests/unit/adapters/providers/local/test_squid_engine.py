"""What becomes of a squid that does not run; scripts stand in for it, real ones are elsewhere."""

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy_operator.adapters.providers.local import programs
from proxy_operator.adapters.providers.local.instances import Instances
from proxy_operator.domain.proxy import LocalBlock, LocalEngine
from proxy_operator.provisioning.errors import EnvironmentProviderError
from tests.local_instances import is_alive
from tests.unit.adapters.providers.local.conftest import a_request
from tests.unit.adapters.providers.local.targets import pause


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Not tmp_path: where the tests run as root squid is another user, who may not enter that.
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "program"
        path.parent.chmod(0o755)
        monkeypatch.setattr(programs, "SQUIDS", (str(path),))
        monkeypatch.setattr(programs, "HELPERS", (str(path),))
        yield path


def refused(instances: Instances, program: Path, script: str) -> str:
    """Let a create fail with that script for squid; return why, when nothing is left of it."""
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    request = a_request(local=LocalBlock(engine=LocalEngine.SQUID))
    with pytest.raises(EnvironmentProviderError) as told:
        instances.create(request, threading.Event())
    for _ in range(1000):
        if instances.observe(request.name) is None:
            return str(told.value)
        pause(0.01)
    raise AssertionError("something is left")


def test_its_last_words_are_told(instances: Instances, root: Path, program: Path):
    told = refused(instances, program, "echo '11:00| FATAL: no such thing' >&2; exit 1")
    assert told == "squid does not run: no such thing"
    assert list(root.iterdir()) == []


def test_one_that_ends_without_a_word_is_told_too(instances: Instances, program: Path):
    assert refused(instances, program, "exit 0") == "squid does not run: it ended without a word"


def test_one_that_is_no_program_is_told(instances: Instances, program: Path):
    program.write_text("#!/no/such/shell\n")
    program.chmod(0o755)
    request = a_request(local=LocalBlock(engine=LocalEngine.SQUID))
    with pytest.raises(EnvironmentProviderError, match="No such file"):
        instances.create(request, threading.Event())


def test_what_it_started_is_collected(instances: Instances, program: Path):
    mark = program.with_name("helper")
    mark.touch(0o666)
    mark.chmod(0o666)
    script = f"setsid sleep 0.2 & echo $! > {mark}; sleep 0.05; exit 1"
    refused(instances, program, script)
    assert not is_alive(int(mark.read_text()))

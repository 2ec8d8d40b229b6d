"""Files that are whole or absent, and processes that are told apart."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from proxy_operator.adapters.providers.local import layout


def test_what_is_written_is_read(tmp_path: Path):
    path = tmp_path / "a.json"
    for content in ({"a": 1}, {"b": "ü"}):
        layout.write_atomically(path, content)
        assert layout.read_json(path) == content
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
def test_what_is_damaged_is_as_good_as_absent(tmp_path: Path, content: bytes):
    path = tmp_path / "a.json"
    assert layout.read_json(path) is None
    assert layout.read_json(path / "below") is None
    path.write_bytes(content)
    assert layout.read_json(path) is None


def test_a_process_is_known_by_its_start():
    mine = layout.start_of(os.getpid())
    assert mine == layout.start_of(os.getpid())
    with subprocess.Popen(["/bin/sleep", "60"]) as other:
        started = layout.start_of(other.pid)
        assert started is not None
        assert mine is not None
        assert started > mine
        other.kill()
    assert layout.start_of(other.pid) is None

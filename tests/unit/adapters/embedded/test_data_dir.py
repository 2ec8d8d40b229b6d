import os
import stat
from pathlib import Path

import pytest

from proxy_operator.adapters.embedded.data_dir import DataDir, make_private
from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.errors import DataDirError
from proxy_operator.adapters.embedded.object_store import SqliteObjectClient
from proxy_operator.testing.object_client_contract import a_proxy


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_a_missing_directory_is_made_for_its_owner_only(tmp_path: Path, open_umask: None):
    data_dir = DataDir(tmp_path / "a" / "b")
    data_dir.prepare(create=True)
    assert mode_of(data_dir.path) == 0o700


def test_an_existing_directory_is_closed_to_others(tmp_path: Path):
    (tmp_path / "data").mkdir(mode=0o755)
    DataDir(tmp_path / "data").prepare(create=False)
    assert mode_of(tmp_path / "data") == 0o700


def test_a_missing_directory_is_not_made_for_a_reader(tmp_path: Path):
    with pytest.raises(DataDirError, match="does not exist: apply a manifest or start"):
        DataDir(tmp_path / "data").prepare(create=False)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("below", ["", "/data"])
def test_a_file_in_the_way(tmp_path: Path, below: str):
    (tmp_path / "file").touch()
    with pytest.raises(DataDirError, match=r"[Nn]ot a directory"):
        DataDir(Path(f"{tmp_path}/file{below}")).prepare(create=True)


def test_a_directory_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with pytest.raises(DataDirError, match=rf"belongs to user id {own} .* runs as {own + 1}"):
        DataDir(tmp_path).prepare(create=True)


def test_a_directory_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    with pytest.raises(DataDirError, match="is not writable"):
        DataDir(tmp_path).prepare(create=True)


def test_a_private_file_stays_private(tmp_path: Path, open_umask: None):
    make_private(tmp_path / "f")
    assert mode_of(tmp_path / "f") == 0o600
    (tmp_path / "f").write_text("kept")
    (tmp_path / "f").chmod(0o644)
    make_private(tmp_path / "f")
    assert mode_of(tmp_path / "f") == 0o600
    assert (tmp_path / "f").read_text() == "kept"


def test_a_private_file_is_its_owners_under_any_umask(tmp_path: Path, open_umask: None):
    os.umask(0o777)
    make_private(tmp_path / "f")
    assert mode_of(tmp_path / "f") == 0o600


async def test_all_files_of_a_store_in_use_are_private(
    open_umask: None, data_dir, database: Database, client: SqliteObjectClient
):
    await client.create(a_proxy("default"))
    modes = {path.name: mode_of(path) for path in data_dir.path.iterdir()}
    assert modes == dict.fromkeys(
        ["store.sqlite3", "store.sqlite3-wal", "store.sqlite3-shm"], 0o600
    )

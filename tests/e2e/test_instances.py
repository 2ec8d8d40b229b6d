"""`instances`: whose each instance is, seen beside a running operator and without one."""

from tests.e2e.home import Home, a_local
from tests.e2e.processes import until


def rows(home: Home, *flags: str) -> list[list[str]]:
    """The table without its header, column by column."""
    ended = home.cli("instances", *flags)
    assert ended.code == 0, ended
    return [line.split() for line in ended.out.splitlines()[1:]]


def test_the_instances_of_a_lost_cluster_id_are_found_and_taken_back(home: Home):
    operator = home.operator("--cluster-id", "old")
    home.apply(a_local("p1"))
    home.wait_ready("p1")
    provider_id = home.proxies()["p1"].status.provider_id
    [row] = rows(home, "--cluster-id", "old")
    assert (row[:4], row[5:]) == (
        ["local", provider_id, "Running", "127.0.0.1"],
        ["old", "yes", "default/p1"],
    )
    assert rows(home, "--cluster-id", "old", "--foreign") == []
    assert operator.stop() == 0

    # Without the flag the directory's own id counts, and the instance is a stranger.
    ended = home.cli("instances", "--foreign")
    assert ended.err.startswith("this operator's cluster id is ")
    [row] = rows(home, "--foreign")
    assert row[5:] == ["old", "no", "default/p1"]
    process = home.process_of("p1")

    home.operator("--cluster-id", "old")
    home.wait_ready("p1")
    assert home.process_of("p1").identity == process.identity


def test_an_instance_whose_proxy_is_gone_has_none(home: Home):
    operator = home.operator("--cluster-id", "old")
    home.apply(a_local("p1"))
    home.wait_ready("p1")
    operator.kill()
    home.close_store()
    for path in home.data_dir.glob("store.sqlite3*"):
        path.unlink()

    home.apply(a_local("p1"))
    [row] = rows(home)
    assert row[5:] == ["old", "no", "<none>"]
    # What the page says to do about it.
    operator = home.operator("--cluster-id", "old", "--gc-interval", "1s", "--gc-min-age", "1s")
    home.wait_ready("p1")

    def is_alone() -> bool:
        return [row[-1] for row in rows(home, "--cluster-id", "old")] == ["default/p1"]

    until(is_alone, "the orphan is gone")


def test_a_directory_without_a_store_is_refused(home: Home):
    ended = home.cli("instances")
    assert (ended.code, ended.out) == (1, "")
    assert "does not exist" in ended.err

"""The provider gcp in the standalone home, on a fake cloud whose instances are real proxies."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.compute import ComputeProcess, nat_ip
from tests.e2e.home import Home
from tests.e2e.origin import Origin
from tests.e2e.processes import until

OWN, OTHER = "mine", "somebody-else"


@pytest.fixture
def compute(tmp_path: Path) -> Iterator[ComputeProcess]:
    made = ComputeProcess(tmp_path)
    try:
        yield made
    finally:
        made.close()


def test_one_instance_through_a_crash_and_none_at_the_end(
    home: Home, compute: ComputeProcess, origin: Origin
):
    foreign = compute.plant("00000000-0000-4000-8000-000000000001", OTHER)
    flags = ("--cluster-id", OWN, *compute.flags)
    operator = home.operator(*flags)
    applied = home.cli("apply", "-f", "-", stdin=json.dumps(compute.manifest("one", origin.http)))
    assert applied.code == 0, applied
    home.wait_ready("one")
    provider_id = home.proxies()["one"].status.provider_id or ""
    instances = compute.instances()
    assert {*instances} == {foreign, provider_id}

    lease = until(operator.lease, "a lease")
    page = origin.fetch(origin.http, lease["proxy"]["url"])
    assert page["from"] == nat_ip(instances[provider_id])

    # Made by an operator that has lost its objects.
    orphan = compute.plant("00000000-0000-4000-8000-000000000002", OWN)
    operator.kill()
    home.operator(*flags, "--gc-interval", "500ms", "--gc-min-age", "1s")
    until(lambda: orphan not in compute.instances(), "the orphan is gone")
    home.wait_ready("one")
    assert compute.instances().keys() == instances.keys()
    assert compute.instances()[provider_id]["id"] == instances[provider_id]["id"]

    # The running operator does the work: this process looks nowhere itself.
    ended = home.cli("down", "--cluster-id", OWN, *compute.flags)
    assert ended.code == 0, ended
    assert ended.out.endswith("\nno Proxy is left\n")
    assert {*compute.instances()} == {foreign}

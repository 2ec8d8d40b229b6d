"""Connecting to the very address that was asked about."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proxy_operator.adapters.providers.local.dialer import Dialer, TargetRefusedError, is_own
from proxy_operator.adapters.providers.local.reach import Reach, plain_address, write_reach
from proxy_operator.provisioning.targets import parse_allowed_target
from tests.unit.adapters.providers.local.targets import Target, a_target

Resolve = Callable[..., None]


@pytest.fixture
def target() -> Iterator[Target]:
    with a_target() as one:
        yield one


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "instances"


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Resolve:
    """Let names come to these addresses, one answer after another."""
    real = socket.getaddrinfo

    def set_answers(*answers: list[str]) -> None:
        left = list(answers)

        def getaddrinfo(host: str, port: int, *rest: int, **more: int):
            if host.endswith(".example"):
                return [entry for one in left.pop(0) for entry in real(one, port, *rest, **more)]
            return real(host, port, *rest, **more)

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    return set_answers


def far(root: Path) -> Dialer:
    """A dialer whose clients are on other machines."""
    return Dialer(root, bind="0.0.0.0", egress_address=None)


def near(root: Path) -> Dialer:
    return Dialer(root, bind="127.0.0.1", egress_address=None)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "127.1", "0x7f000001"])
def test_this_machine_is_for_its_own_clients(root: Path, target: Target, host: str):
    near(root).connect(host, target.port).close()
    with pytest.raises(TargetRefusedError):
        far(root).connect(host, target.port)


def test_a_name_counts_by_what_it_comes_to(root: Path, target: Target, resolve: Resolve):
    resolve(["169.254.169.254"])
    with pytest.raises(TargetRefusedError):
        near(root).connect("metadata.google.example", 80)


def test_a_second_answer_leads_nowhere(root: Path, target: Target, resolve: Resolve):
    write_reach(root, Reach(allowed=(parse_allowed_target(f"127.0.0.1:{target.port}"),)))
    resolve(["127.0.0.1"], ["169.254.169.254"])
    with far(root).connect("rebinding.example", target.port) as connection:
        assert connection.getpeername() == ("127.0.0.1", target.port)


def test_a_refused_address_beside_a_good_one_is_passed_over(
    root: Path, target: Target, resolve: Resolve
):
    write_reach(root, Reach(allowed=(parse_allowed_target(f"127.0.0.1:{target.port}"),)))
    resolve(["127.0.0.2", "169.254.169.254", "127.0.0.1"])
    with far(root).connect("both.example", target.port) as connection:
        assert connection.getpeername()[0] == "127.0.0.1"


def test_the_next_address_is_tried(root: Path, target: Target, resolve: Resolve):
    resolve(["127.0.0.9", "127.0.0.1"])
    with near(root).connect("two.example", target.port) as connection:
        assert connection.getpeername()[0] == "127.0.0.1"


def test_what_the_operator_says_holds_at_once(root: Path, target: Target):
    dialer = near(root)
    dialer.connect("127.0.0.1", target.port).close()
    write_reach(root, Reach(api_ports=(target.port,)))
    with pytest.raises(TargetRefusedError):
        dialer.connect("127.0.0.1", target.port)
    write_reach(root, Reach())
    dialer.connect("127.0.0.1", target.port).close()


@pytest.mark.parametrize(("address", "own"), [("127.0.0.1", True), ("192.0.2.1", False)])
def test_an_address_of_this_machine_is_known(address: str, own: bool):
    assert is_own(plain_address(address)) is own


def test_the_address_this_machine_goes_out_by_is_its_own():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trial:
        try:
            trial.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no way out")
        assert is_own(plain_address(trial.getsockname()[0]))

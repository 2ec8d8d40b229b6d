"""The simulation finds what is broken on purpose."""

import logging
from collections.abc import Iterator

import pytest

from tests.simulation.planted import PLANTED
from tests.simulation.run import simulate

FIRST_SEEDS = range(1, 31)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """A broken operator has much to say."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_within_the_first_seeds(name: str):
    with PLANTED[name]():
        assert any(simulate(seed).wrong for seed in FIRST_SEEDS)

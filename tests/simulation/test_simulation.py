"""A few seeds; `make simulate` plays as many as are asked for."""

import pytest

from tests.simulation.run import simulate


@pytest.mark.parametrize("seed", range(1, 51))
def test_nothing_leaks(seed: int):
    verdict = simulate(seed)
    assert verdict.wrong == ()
    assert verdict.lives > 10


def test_a_seed_gives_the_same_verdict_again():
    assert simulate(2) == simulate(2)

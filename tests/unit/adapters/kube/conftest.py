"""A throwaway authority, and time that moves when told."""

import pytest
import trustme

from tests.unit.adapters.kube.clusters import HandClock


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()

"""Homes and origins of the end-to-end tests, ended whatever happens."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.home import Home
from tests.e2e.origin import Origin


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """For modules whose tests only look."""
    made = Home(tmp_path_factory.mktemp("home"))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    made = Origin()
    try:
        yield made
    finally:
        made.close()

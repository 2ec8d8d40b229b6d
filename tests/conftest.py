"""What holds for the whole suite."""

import asyncio

import pytest

# Before anything imports it, so that its failures show values as those of the tests do.
pytest.register_assert_rewrite("proxy_operator.testing.object_client_contract")


def pytest_configure() -> None:
    # Without a word on it, Python below 3.14 makes a loop for whoever asks for the current one;
    # the asyncio plugin asks before the first asynchronous test, and nobody would close that loop.
    asyncio.set_event_loop(None)

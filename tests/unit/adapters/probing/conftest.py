"""A throwaway authority, and a prober that trusts it."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping

import pytest
import trustme
import uvloop

from proxy_operator.adapters.probing.prober import ProxyProber
from proxy_operator.runtime.clock import SystemClock


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Probe on both loops: the operator runs on uvloop where it installs, and they do differ."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


def _server_context(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names).configure_cert(context)
    return context


@pytest.fixture(scope="session")
def tls(authority: trustme.CA) -> ssl.SSLContext:
    """TLS of a server whose certificate is good for the names used in tests."""
    return _server_context(authority, "target.example", "localhost", "127.0.0.1", "::1")


@pytest.fixture(scope="session")
def tls_of_other_name(authority: trustme.CA) -> ssl.SSLContext:
    return _server_context(authority, "other.example")


@pytest.fixture(scope="session")
def own_tls() -> ssl.SSLContext:
    """TLS of a server that vouches for itself."""
    return _server_context(trustme.CA(), "target.example", "127.0.0.1")


@pytest.fixture(scope="session")
def client_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture
def prober(client_context: ssl.SSLContext) -> Iterator[ProxyProber]:
    prober = ProxyProber(client_context, SystemClock())
    yield prober
    prober.close()


@pytest.fixture(scope="session")
def closed_port() -> Iterator[int]:
    """A port nobody listens on, and nobody else can take meanwhile."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]

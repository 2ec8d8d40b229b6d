"""The one adapter over the library: what goes over the wire, and what its errors become.

All servers are on loopback; without the library only its absence is tested.
"""

import asyncio
import builtins
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from proxy_operator.adapters.providers.gcp import google_session
from proxy_operator.adapters.providers.gcp.google_session import GoogleSession
from proxy_operator.adapters.providers.gcp.session import Reply
from proxy_operator.provisioning.errors import EnvironmentProviderError, TransientProviderError

VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
PATH = "/compute/v1/projects/p/zones/a/instances"


def test_without_the_library_the_error_names_the_extra(monkeypatch):
    real = builtins.__import__

    def no_google(name: str, *args, **kwargs):
        if name.startswith("google"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_google)
    with pytest.raises(EnvironmentProviderError, match=r"proxy-operator\[gcp\]"):
        GoogleSession("https://compute.googleapis.com")


class Server:
    """Answers everything alike and keeps what was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.status = 200
        self.text = '{"kind": "compute#operation"}'
        self.delay = 0.0

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        self.bodies.append(await request.read())
        await asyncio.sleep(self.delay)
        return web.Response(status=self.status, text=self.text, content_type="application/json")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    found = Server()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", found.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    found.url = f"http://{host}:{port}"
    yield found
    await runner.cleanup()


@pytest.fixture
async def session(server: Server) -> AsyncIterator[GoogleSession]:
    pytest.importorskip("google.auth", reason="the extra gcp is not installed")
    found = GoogleSession(server.url + "/")
    yield found
    await found.close()


async def test_one_request_as_asked_without_credentials_on_plain_http(session, server):
    body = {"name": "proxy-x", "labels": {"a": "ü"}}
    query = {"requestId": "1", "filter": 'labels.k="v"'}
    assert await session.send("POST", PATH, query, body) == Reply(
        200, {"kind": "compute#operation"}
    )
    [request] = server.asked
    assert (request.method, request.path, dict(request.query)) == ("POST", PATH, query)
    assert "Authorization" not in request.headers
    assert "X-Goog-Api-Version" not in request.headers
    assert json.loads(server.bodies[0]) == body


@pytest.mark.parametrize("status", [404, 409, 429, 500, 503])
async def test_a_refusal_is_an_answer_and_not_repeated(session, server, status):
    server.status, server.text = status, '{"error": {"code": 1}}'
    assert await session.send("GET", PATH, {}) == Reply(status, {"error": {"code": 1}})
    assert len(server.asked) == 1


@pytest.mark.parametrize("text", ["", "<html>", "[1]", "\x00"])
async def test_what_is_no_json_object_is_empty(session, server, text):
    server.text = text
    assert await session.send("GET", PATH, {}) == Reply(200, {})


async def test_no_answer_in_time_is_transient(session, server, monkeypatch):
    monkeypatch.setattr(google_session, "TIMEOUT_S", 0.1)
    server.delay = 0.3
    with pytest.raises(TransientProviderError):
        await session.send("GET", PATH, {})


async def test_no_connection_is_transient():
    pytest.importorskip("google.auth", reason="the extra gcp is not installed")
    session = GoogleSession("http://127.0.0.1:1")
    with pytest.raises(TransientProviderError):
        await session.send("GET", PATH, {})
    await session.close()


async def test_a_closed_session_sends_nothing(session, server):
    await session.send("GET", PATH, {})
    await session.close()
    with pytest.raises(TransientProviderError):
        await session.send("GET", PATH, {})
    assert len(server.asked) == 1


class FakeCredentials:
    """Makes `google.auth.default` give credentials of the test's making."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
        auth = pytest.importorskip("google.auth", reason="the extra gcp is not installed")
        from google.auth import credentials, exceptions  # noqa: PLC0415

        outer = self
        self.asked = 0
        self.error: Exception | None = None
        self.exceptions = exceptions

        class Tokens(credentials.Credentials):
            def refresh(self, request):
                if outer.error is not None:
                    raise outer.error
                self.token = "t0ken"

        def default(scopes=None):
            self.asked += 1
            self.scopes = scopes
            if isinstance(self.error, exceptions.DefaultCredentialsError):
                raise self.error
            return Tokens(), "project-of-credentials"

        monkeypatch.setattr(auth, "default", default)
        # A secure endpoint that the plain test server answers for.
        monkeypatch.setattr(GoogleSession, "_url", lambda self, path, query: url + path)


@pytest.fixture
def credentials(monkeypatch, server) -> FakeCredentials:
    return FakeCredentials(monkeypatch, server.url)


@pytest.fixture
async def secure(credentials) -> AsyncIterator[GoogleSession]:
    found = GoogleSession("https://compute.googleapis.com")
    yield found
    await found.close()


async def test_the_token_of_the_default_credentials_is_sent(secure, credentials, server):
    await asyncio.gather(*(secure.send("GET", PATH, {}) for _ in range(3)))
    assert {one.headers["Authorization"] for one in server.asked} == {"Bearer t0ken"}
    assert credentials.asked == 1


async def test_no_credentials_are_the_surroundings_fault_and_looked_for_again(
    secure, credentials, server, monkeypatch, tmp_path
):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setattr(google_session, "LOOK_AGAIN_S", 0.1)
    credentials.error = credentials.exceptions.DefaultCredentialsError("see https://x/y")
    with pytest.raises(EnvironmentProviderError, match=f"set {VARIABLE}"):
        await secure.send("GET", PATH, {})
    with pytest.raises(EnvironmentProviderError):
        await secure.send("GET", PATH, {})
    assert credentials.asked == 1
    credentials.error = None
    await asyncio.sleep(0.11)
    assert (await secure.send("GET", PATH, {})).status == 200


def a_key(**fields: object) -> str:
    key = {"type": "service_account", "client_email": "a@b", "token_uri": "https://x.example"}
    return json.dumps({**key, **fields})


NO_KEY = "Failed to load service account credentials from {}"
MALFORMED = "its private key or another value is missing or malformed"
UNREADABLE = {
    "missing": (None, "File {} was not found"),
    "garbage": ("private s3cret", "File {} is not a valid json file"),
    "bytes": (b"\xff s3cret", "File {} is not a valid json file"),
    "list": ('["s3cret"]', "{} holds no credentials of a known form"),
    "no form": (
        '{"type": "impersonated_service_account"}',
        "{} holds no credentials of a known form",
    ),
    "no type": ("{}", "The file {} does not have a valid type. Expected one of ("),
    "odd type": (
        '{"type": ["s3cret\\n"]}',
        "The file {} does not have a valid type. Expected one of (",
    ),
    "no fields": (
        '{"type": "service_account", "private_key": "s3cret"}',
        f"{NO_KEY}: missing fields client_email, token_uri",
    ),
    "no key": (
        a_key(),
        f"{NO_KEY}: {MALFORMED}",
    ),
    "no PEM": (
        a_key(private_key="s3cret"),
        f"{NO_KEY}: {MALFORMED}",
    ),
    "list of lines": (
        a_key(private_key=["s3cret"]),
        f"{NO_KEY}: {MALFORMED}",
    ),
    "directory": ("/", "{}: is a directory"),
}


# Without a file of its own, gcloud has no credentials at all.
FAULTS = [
    pytest.param(content, fault, is_gcloud, id=f"{name}-{'gcloud' if is_gcloud else 'variable'}")
    for name, (content, fault) in UNREADABLE.items()
    for is_gcloud in (False, True)
    if not (is_gcloud and content in {None, "/"})
]


@pytest.mark.parametrize(("content", "fault", "is_gcloud"), FAULTS)
async def test_a_file_that_gives_no_credentials_is_named_with_its_fault(
    content, fault, is_gcloud, tmp_path, monkeypatch
):
    pytest.importorskip("google.auth", reason="the extra gcp is not installed")
    file = tmp_path / "application_default_credentials.json"
    if is_gcloud:
        monkeypatch.delenv(VARIABLE, raising=False)
        monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    else:
        monkeypatch.setenv(VARIABLE, str(file))
    if content == "/":
        file.mkdir()
    elif content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = await refusal()
    assert fault.format(file) in said
    assert said.startswith("gcloud gives" if is_gcloud else f"{VARIABLE} gives")
    assert "s3cret" not in said
    assert "\n" not in said


async def refusal() -> str:
    """Return why a request cannot be sent; the same when it is told from memory."""
    session = GoogleSession("https://compute.googleapis.com")
    said = []
    for _ in range(2):
        with pytest.raises(EnvironmentProviderError) as caught:
            await session.send("GET", PATH, {})
        said.append(str(caught.value))
    await session.close()
    assert said[0] == said[1]
    return said[0]


@pytest.mark.parametrize(
    "content", [a_key(private_key="s3cret"), "czNjcmV0" * 99], ids=["json", "base64"]
)
async def test_a_key_in_place_of_its_path_is_not_repeated(content, monkeypatch):
    pytest.importorskip("google.auth", reason="the extra gcp is not installed")
    monkeypatch.setenv(VARIABLE, content)
    said = await refusal()
    assert said.startswith(f"{VARIABLE} must hold the path of a file")
    assert "s3cret" not in said
    assert "czNj" not in said


async def test_a_revoked_key_is_the_surroundings_fault(secure, credentials, server):
    credentials.error = credentials.exceptions.RefreshError("invalid_grant")
    with pytest.raises(EnvironmentProviderError, match="refused a token"):
        await secure.send("GET", PATH, {})
    assert server.asked == []


@pytest.mark.parametrize("make", ["RefreshError", "TransportError", "TimeoutError"])
async def test_a_token_server_that_is_away_is_transient(secure, credentials, server, make):
    kind = getattr(credentials.exceptions, make)
    credentials.error = kind("away", retryable=True)
    with pytest.raises(TransientProviderError):
        await secure.send("GET", PATH, {})
    assert server.asked == []


async def test_a_metadata_server_that_is_away_is_transient(secure, credentials, server):
    credentials.error = credentials.exceptions.RefreshError("away")
    credentials.error.__cause__ = credentials.exceptions.TransportError("no connection")
    with pytest.raises(TransientProviderError):
        await secure.send("GET", PATH, {})


async def test_a_token_refused_by_the_api_is_asked_for_again(secure, credentials, server):
    server.status, server.text = 401, '{"error": {"code": 401}}'
    assert (await secure.send("GET", PATH, {})).status == 401
    assert len(server.asked) > 1

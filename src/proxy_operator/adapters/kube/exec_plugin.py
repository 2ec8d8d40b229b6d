"""One run of a credential plugin (API group client.authentication.k8s.io, v1 and v1beta1).

https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
The rule: what a plugin prints on stdout is secret, and never part of a message.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final, NoReturn

import msgspec

from proxy_operator.adapters.kube.access import CredentialsError
from proxy_operator.adapters.kube.proofs import Proof, bearer, is_token
from proxy_operator.adapters.kube.tls import KeyPair, check_pair

API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

_TIMEOUT_SECONDS: Final = 60.0
_KILL_SECONDS: Final = 2.0
_OUTPUT_BYTES: Final = 1 << 20
_QUOTED_CHARACTERS: Final = 500


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """What to run, and what it must answer in."""

    where: str
    """`/home/me/.kube/config, user "me", exec`."""
    api_version: str
    command: tuple[str, ...] = field(repr=False)
    environ: Mapping[str, str] = field(repr=False)
    """The whole environment, KUBERNETES_EXEC_INFO included."""
    install_hint: str


@dataclass(frozen=True)
class Credential:
    """What a plugin answered."""

    proof: Proof
    expires_at: datetime | None


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    kind: str | None = None
    api_version: str | None = None
    status: _Status | None = None


async def run_plugin(plugin: Plugin) -> Credential:
    """Run the plugin once, without a terminal. CredentialsError is one sentence about it."""
    process = await _start(plugin)
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS), asyncio.TaskGroup() as group:
            stdout = group.create_task(_read(process.stdout))
            stderr = group.create_task(_read(process.stderr))
            group.create_task(process.wait())
    except BaseException as err:
        await _kill(process)
        if isinstance(err, TimeoutError):
            reason = f"gave no credential within {_TIMEOUT_SECONDS:g} seconds"
            raise _failure(plugin, reason) from err
        raise
    if process.returncode != 0:
        said = _quoted(stderr.result())
        _fail(plugin, f"failed with {_exit_of(process.returncode)}{said}")
    return _credential(plugin, stdout.result())


async def _start(plugin: Plugin) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *plugin.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=plugin.environ,
            start_new_session=True,
        )
    except (OSError, ValueError) as err:
        reason = getattr(err, "strerror", None) or "not a command"
        hint = f" ({plugin.install_hint})" if plugin.install_hint else ""
        raise _failure(plugin, f"cannot be run: {reason.lower()}{hint}") from err


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    """Read to the end, so that the writer never waits; keep the last bytes only."""
    kept = bytearray()
    while stream is not None and (part := await stream.read(1 << 16)):
        kept += part
        del kept[:-_OUTPUT_BYTES]
    return bytes(kept)


async def _kill(process: asyncio.subprocess.Process) -> None:
    """End the plugin and what it has started in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    # A stranger to the session may hold the pipes, for which some loops wait too.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_KILL_SECONDS):
            await process.wait()


def _credential(plugin: Plugin, output: bytes) -> Credential:
    try:
        answer = msgspec.json.decode(output, type=_ExecCredential)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise _failure(plugin, f"printed no ExecCredential: {err}") from err
    if answer.kind != "ExecCredential":
        _fail(plugin, "printed an object that is no ExecCredential")
    if answer.api_version != plugin.api_version:
        _fail(plugin, f"must answer in {plugin.api_version}, its answer has another apiVersion")
    status = answer.status
    if status is None or not (status.token or status.client_certificate_data):
        _fail(plugin, "printed neither a token nor a client certificate in status")
    return Credential(_proof(plugin, status), status.expiration_timestamp)


def _proof(plugin: Plugin, status: _Status) -> Proof:
    certificate, key = status.client_certificate_data, status.client_key_data
    if bool(certificate) != bool(key):
        _fail(plugin, "printed a client certificate or a key without the other")
    pair = None
    if certificate and key:
        pair = KeyPair(certificate.encode(), key.encode())
        try:
            check_pair(pair)
        except ValueError as err:
            raise _failure(plugin, f"printed an unusable client certificate: {err}") from err
    token = (status.token or "").strip()
    if not token:
        return Proof(key_pair=pair)
    if not is_token(token):
        _fail(plugin, "printed a token that cannot stand in a header")
    return Proof(bearer(token).authorization, pair)


def _exit_of(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _quoted(stderr: bytes) -> str:
    """Return the end of what the plugin complained about, as one printable line."""
    text = " ".join(stderr.decode("utf-8", "replace").split())
    text = "".join(c if c.isprintable() else "?" for c in text)
    if not text:
        return ""
    short = text if len(text) <= _QUOTED_CHARACTERS else f"…{text[-_QUOTED_CHARACTERS:]}"
    return f": {short}"


def _failure(plugin: Plugin, reason: str) -> CredentialsError:
    return CredentialsError(f"{plugin.where}: the plugin {plugin.command[0]} {reason}")


def _fail(plugin: Plugin, reason: str) -> NoReturn:
    raise _failure(plugin, reason)

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
from typing import IO, Annotated, Final, NoReturn

import msgspec

from proxy_operator.adapters.kube.access import CredentialsError
from proxy_operator.adapters.kube.private_file import private_file
from proxy_operator.adapters.kube.proofs import Proof, bearer, is_token
from proxy_operator.adapters.kube.tls import KeyPair, check_pair

API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

_TIMEOUT_SECONDS: Final = 60.0
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
    # Files and no pipes: a helper that the plugin leaves in the background would hold a pipe open.
    with private_file() as stdout, private_file() as stderr:
        process = await _start(plugin, stdout.file, stderr.file)
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                code = await process.wait()
        except TimeoutError as err:
            reason = f"gave no credential within {_TIMEOUT_SECONDS:g} seconds"
            raise _failure(plugin, f"{reason}{_quoted(stderr.file)}") from err
        finally:
            await _end(process)
        if code != 0:
            ended = f"signal {-code}" if code < 0 else f"exit code {code}"
            _fail(plugin, f"failed with {ended}{_quoted(stderr.file)}")
        stdout.file.seek(0)
        return _credential(plugin, stdout.file.read(_OUTPUT_BYTES))


async def _start(
    plugin: Plugin, stdout: IO[bytes], stderr: IO[bytes]
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *plugin.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=plugin.environ,
            start_new_session=True,
        )
    except (OSError, ValueError) as err:
        reason = getattr(err, "strerror", None) or "not a command"
        hint = f" ({plugin.install_hint})" if plugin.install_hint else ""
        raise _failure(plugin, f"cannot be run: {reason.lower()}{hint}") from err


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the plugin and what it has started in its session, unless it has ended by itself."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
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


def _quoted(stderr: IO[bytes]) -> str:
    """Return the end of what the plugin complained about, as one printable line."""
    stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - 4 * _QUOTED_CHARACTERS))
    text = " ".join(stderr.read().decode("utf-8", "replace").split())
    text = "".join(c if c.isprintable() else "?" for c in text)
    if not text:
        return ""
    short = text if len(text) <= _QUOTED_CHARACTERS else f"…{text[-_QUOTED_CHARACTERS:]}"
    return f": {short}"


def _failure(plugin: Plugin, reason: str) -> CredentialsError:
    return CredentialsError(f"{plugin.where}: the plugin {plugin.command[0]} {reason}")


def _fail(plugin: Plugin, reason: str) -> NoReturn:
    raise _failure(plugin, reason)

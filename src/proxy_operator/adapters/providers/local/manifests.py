"""What a local instance is made of, as pure functions: checks, record, settings, command line.

No call here touches the machine; secrets leave only through `settings_for` and its like for squid,
which go to a pipe.
"""

import ipaddress
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from proxy_operator.adapters.providers.local.programs import SquidPrograms
from proxy_operator.adapters.providers.squid.users import check_credentials, users_file
from proxy_operator.domain.proxy import LocalBlock, LocalEngine, Scheme
from proxy_operator.provisioning.contract import CreateRequest
from proxy_operator.provisioning.errors import EnvironmentProviderError, PermanentProviderError

LAUNCHER: Final = "proxy_operator.adapters.providers.local.launcher"
_NAME: Final = re.compile(r"proxy-[a-z2-7]{16}")
_ID_PREFIX: Final = "local/"


class InstanceRecord(msgspec.Struct, kw_only=True, frozen=True):
    """Who an instance belongs to."""

    labels: dict[str, str]
    created_at: datetime
    namespace: str
    proxy_name: str
    request_id: str


def provider_id_of(name: str) -> str:
    """Return the id of the instance of that name."""
    return f"{_ID_PREFIX}{name}"


def name_of(provider_id: str) -> str | None:
    """Return the name in an id, or None when it is no id of ours."""
    name = provider_id.removeprefix(_ID_PREFIX)
    return name if provider_id.startswith(_ID_PREFIX) and is_name(name) else None


def is_name(name: str) -> bool:
    """Tell whether this can be the name of an instance (`domain.names.instance_name`)."""
    return _NAME.fullmatch(name) is not None


def check(request: CreateRequest, bind: str) -> None:
    """Raise what no attempt could change: PermanentProviderError, EnvironmentProviderError."""
    spec, block = request.spec, request.spec.local or LocalBlock()
    if not is_name(request.name):
        raise PermanentProviderError(f"{request.name!r} is not an instance name")
    if spec.scheme is Scheme.HTTPS:
        raise PermanentProviderError(
            "spec.scheme: a local proxy speaks http only; remove scheme, or set it to http"
        )
    if request.user_data is not None:
        raise PermanentProviderError(
            "spec.cloudInit: a local proxy is a process and has no first boot; remove cloudInit"
        )
    if block.egress_address is not None and not _is_address(block.egress_address):
        raise PermanentProviderError(
            f"spec.local.egressAddress: {block.egress_address!r} is not an IP address"
        )
    if is_squid(request) and request.credentials is not None:
        try:
            check_credentials(request.credentials)
        except ValueError as err:
            raise PermanentProviderError(f"spec.credentialsSecretRef: {err}") from err
    _check_exposure(request, bind)


def _check_exposure(request: CreateRequest, bind: str) -> None:
    if not _is_address(bind):
        raise EnvironmentProviderError(f"local-bind: {bind!r} is not an IP address")
    if request.credentials is None and not ipaddress.ip_address(bind).is_loopback:
        raise PermanentProviderError(
            f"spec.credentialsSecretRef: local proxies listen on {bind}, beyond loopback,"
            " and there an open proxy is refused; set credentialsSecretRef"
        )


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_squid(request: CreateRequest) -> bool:
    """Tell whether the instance is to run squid."""
    return request.spec.local is not None and request.spec.local.engine is LocalEngine.SQUID


def egress_of(request: CreateRequest) -> str | None:
    """Return the source address asked for."""
    return request.spec.local.egress_address if request.spec.local else None


def record_of(request: CreateRequest, now: datetime) -> dict[str, Any]:
    """Return the record to write before anything runs."""
    record = InstanceRecord(
        labels=request.labels,
        created_at=now,
        namespace=request.namespace,
        proxy_name=request.proxy_name,
        request_id=request.request_id,
    )
    built: dict[str, Any] = msgspec.to_builtins(record)
    return built


def parse_record(content: dict[str, Any] | None) -> InstanceRecord | None:
    """Read a record; None when there is none or it is damaged."""
    try:
        return msgspec.convert(content, InstanceRecord)
    except msgspec.ValidationError:
        return None


def settings_for(request: CreateRequest, bind: str) -> bytes:
    """Return what the launcher reads from stdin. It holds the password: only ever pipe it."""
    credentials = request.credentials
    settings = {
        **_common_settings(request, bind),
        "engine": LocalEngine.PROXY_PY,
        "credentials": [credentials.username, credentials.password] if credentials else None,
    }
    return json.dumps(settings).encode()


def squid_settings_for(
    request: CreateRequest, bind: str, programs: SquidPrograms, salt: str
) -> bytes:
    """Return the same for an instance with squid, which never learns the password itself.

    Slow with credentials (about 10 ms).
    """
    credentials = request.credentials
    settings = {
        **_common_settings(request, bind),
        "engine": LocalEngine.SQUID,
        "users": users_file(credentials, salt) if credentials else None,
        "programs": {"squid": programs.squid, "authHelper": programs.auth_helper},
    }
    return json.dumps(settings).encode()


def _common_settings(request: CreateRequest, bind: str) -> dict[str, Any]:
    return {
        "bind": bind,
        "port": request.spec.port or 0,
        "egressAddress": egress_of(request),
    }


def arguments_for(python: str, directory: Path) -> list[str]:
    """Return the command line. -I: neither variables nor the working directory reach the child."""
    return [python, "-I", "-m", LAUNCHER, str(directory)]


def environment_for(directory: Path) -> dict[str, str]:
    """Return the whole environment of the process: nothing of the operator's own."""
    return {"HOME": str(directory), "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}

"""The kubeconfig file format, v1, as far as an operator needs it.

https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
The rule: a file holds secrets, so a message tells places and rules, never values.
"""

import re
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec import field

from proxy_operator.adapters.kube.access import ClusterConfigError

_MAX_BYTES: Final = 8 << 20


class _Wire(msgspec.Struct, rename="kebab"):
    """Members are named as in the file; absent, null and empty are the same."""


class Extension(_Wire):
    """Data of others, by the name of who reads it."""

    name: str
    extension: Any = None


class Cluster(_Wire):
    """Where an API server is, and how it is known."""

    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None
    extensions: list[Extension] | None = None


class Variable(_Wire):
    """A variable for a plugin's environment."""

    name: str | None = None
    value: str | None = None


class Exec(_Wire, rename="camel"):
    """A program that fetches credentials."""

    api_version: str | None = None
    command: str | None = None
    args: list[str] | None = None
    env: list[Variable] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: str | None = None


class User(_Wire):
    """Who we are."""

    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    impersonate: str | None = field(default=None, name="as")
    impersonate_uid: str | None = field(default=None, name="as-uid")
    impersonate_groups: list[str] | None = field(default=None, name="as-groups")
    impersonate_extra: dict[str, list[str]] | None = field(default=None, name="as-user-extra")
    auth_provider: Any = None
    exec: Exec | None = None


class Context(_Wire):
    """Which user at which cluster, and in which namespace."""

    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class NamedCluster(_Wire):
    """An entry of `clusters`."""

    name: str
    cluster: Cluster | None = None


class NamedUser(_Wire):
    """An entry of `users`."""

    name: str
    user: User | None = None


class NamedContext(_Wire):
    """An entry of `contexts`."""

    name: str
    context: Context | None = None


class Kubeconfig(_Wire):
    """One file."""

    kind: str | None = None
    api_version: str | None = field(default=None, name="apiVersion")
    current_context: str | None = None
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None


def read_kubeconfig(path: Path) -> Kubeconfig:
    """Return what a file says. FileNotFoundError; ClusterConfigError for whatever else."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as err:
        reason = (err.strerror or "input/output error").lower()
        raise ClusterConfigError(f"{path} cannot be read: {reason}") from err
    if len(text) > _MAX_BYTES:
        raise ClusterConfigError(f"{path} is too large for a kubeconfig")
    try:
        config = msgspec.convert(_document(path, text) or {}, Kubeconfig)
    except msgspec.ValidationError as err:
        raise ClusterConfigError(f"{path} is no kubeconfig: {err}") from err
    if config.kind not in {None, "", "Config"} or config.api_version not in {None, "", "v1"}:
        raise ClusterConfigError(f"{path} is no kubeconfig: it must be of kind Config, version v1")
    return config


def _document(path: Path, text: bytes) -> Any:  # noqa: ANN401 - whatever the document holds
    try:
        # JSON may be indented with tabs, which YAML forbids.
        if text.lstrip()[:1] == b"{":
            try:
                return msgspec.json.decode(text)
            except msgspec.DecodeError:
                pass
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a CSafeLoader
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark
        place = f" line {mark.line + 1}, column {mark.column + 1}:" if mark else ""
        raise ClusterConfigError(f"{path} is no YAML:{place} {err.problem or err.context}") from err
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as err:
        raise ClusterConfigError(f"{path} is no YAML that can be read") from err


class _Loader(yaml.CSafeLoader):
    """YAML in which only `true` and `false` are truth values, and dates are text."""


_TRUTH: Final = "tag:yaml.org,2002:bool"
_DROPPED: Final = {"tag:yaml.org,2002:timestamp", _TRUTH}

_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _DROPPED]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    _TRUTH, re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)

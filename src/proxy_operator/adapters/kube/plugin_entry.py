"""The `exec` of a kubeconfig's user, made into a plugin that can be run.

The rule: it is checked when the configuration is read, so that a run fails for its own reasons
only.
"""

import base64
import shutil
from collections.abc import Mapping
from typing import Any

import msgspec

from proxy_operator.adapters.kube.cluster_entry import Endpoint
from proxy_operator.adapters.kube.entry import Entry
from proxy_operator.adapters.kube.exec_plugin import API_VERSIONS, Plugin
from proxy_operator.adapters.kube.kubeconfig_file import Exec, User

_V1 = API_VERSIONS[0]


def plugin_of(
    entry: Entry[User], config: Exec, endpoint: Endpoint, environ: Mapping[str, str]
) -> Plugin:
    """Check an `exec` and return what it runs. ClusterConfigError names file, user and field."""
    api_version = _api_version(entry, config)
    _check_mode(entry, config, api_version)
    environ = {**environ, **_variables(entry, config)}
    about = _about(api_version, endpoint if config.provide_cluster_info else None)
    environ["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(about).decode()
    return Plugin(
        where=entry.where("exec"),
        api_version=api_version,
        command=(_command(entry, config, environ), *(config.args or ())),
        environ=environ,
        install_hint=" ".join((config.install_hint or "").split()),
    )


def _api_version(entry: Entry[User], config: Exec) -> str:
    if config.api_version not in API_VERSIONS:
        raise entry.fault("exec.apiVersion", f"must be {' or '.join(API_VERSIONS)}")
    return config.api_version


def _check_mode(entry: Entry[User], config: Exec, api_version: str) -> None:
    mode = config.interactive_mode or ("" if api_version == _V1 else "IfAvailable")
    if mode == "Always":
        raise entry.fault(
            "exec.interactiveMode",
            "is Always, but an operator has no terminal to ask at; use other credentials",
        )
    if mode not in {"Never", "IfAvailable"}:
        raise entry.fault("exec.interactiveMode", "must be Never or IfAvailable")


def _variables(entry: Entry[User], config: Exec) -> dict[str, str]:
    found: dict[str, str] = {}
    for variable in config.env or ():
        name, value = variable.name or "", variable.value or ""
        if not name or "=" in name or "\0" in name + value:
            raise entry.fault("exec.env", "must hold variables with a name and a value")
        found[name] = value
    return found


def _command(entry: Entry[User], config: Exec, environ: Mapping[str, str]) -> str:
    command = config.command
    if not command:
        raise entry.fault("exec.command", "must name the plugin")
    if "\0" in "".join((command, *(config.args or ()))):
        raise entry.fault("exec.args", "must hold no zero character")
    if "/" in command:
        return str(entry.path(command))
    # A plugin that is not installed is told about, with its hint, when it is run.
    return shutil.which(command, path=environ.get("PATH")) or command


def _about(api_version: str, endpoint: Endpoint | None) -> dict[str, Any]:
    """Return the ExecCredential that tells a plugin what is asked of it."""
    spec: dict[str, Any] = {"interactive": False}
    if endpoint is not None:
        spec["cluster"] = _cluster(endpoint)
    return {"kind": "ExecCredential", "apiVersion": api_version, "spec": spec}


def _cluster(endpoint: Endpoint) -> dict[str, Any]:
    found: dict[str, Any] = {"server": endpoint.server}
    if endpoint.tls_server_name:
        found["tls-server-name"] = endpoint.tls_server_name
    if endpoint.trust is not None and endpoint.trust.insecure:
        found["insecure-skip-tls-verify"] = True
    if endpoint.trust is not None and endpoint.trust.authority is not None:
        authority = endpoint.trust.authority.read()
        found["certificate-authority-data"] = base64.b64encode(authority).decode()
    if endpoint.proxy_url:
        found["proxy-url"] = endpoint.proxy_url
    if endpoint.plugin_config is not None:
        found["config"] = endpoint.plugin_config
    return found

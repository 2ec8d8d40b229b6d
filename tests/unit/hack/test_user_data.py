"""The user data of examples/gcp, and that the parts of the example fit one another."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from hack.user_data import NO_HASH, PORT, USERNAME, USERS_FILE, cloud_config

from proxy_operator.adapters.admission.validate import Admission
from proxy_operator.adapters.providers.squid.config import SquidSettings, squid_conf
from proxy_operator.app.manifests import read_manifests
from proxy_operator.domain.names import CLOUD_INIT_LABEL, CREDENTIALS_LABEL

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "gcp"


def user_data() -> dict[str, Any]:
    found = yaml.safe_load(cloud_config())
    assert isinstance(found, dict)
    return found


def written() -> dict[str, dict[str, Any]]:
    return {file["path"]: file for file in user_data()["write_files"]}


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    """What applying the directory stores, by name."""
    admission = Admission()
    manifests = read_manifests([EXAMPLE], namespace="default")
    return {one.body["metadata"]["name"]: admission.admit(one.body) for one in manifests}


def values(secret: dict[str, Any]) -> dict[str, str]:
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def test_every_key_is_one_that_cloud_init_knows() -> None:
    # `cloud-init schema` lets an unknown key pass, such as runcmds, and the boot ignores it.
    assert cloud_config().startswith("#cloud-config\n")
    assert set(user_data()) == {"package_update", "packages", "write_files", "runcmd"}


def test_squid_is_configured_by_the_shared_template() -> None:
    conf = written()["/etc/squid/squid.conf"]["content"]
    assert conf == squid_conf(SquidSettings(port=PORT, users_file=USERS_FILE)).rstrip("\n") + "\n"
    assert "http_access deny !authenticated\n" in conf


def test_files_are_written_after_the_packages() -> None:
    assert [file["defer"] for file in written().values()] == [True, True]


def test_only_squid_reads_the_hashes_and_there_is_none_yet() -> None:
    users = written()[USERS_FILE]
    assert (users["owner"], users["permissions"]) == ("root:proxy", "0640")
    assert users["content"] == f"{USERNAME}:{NO_HASH}\n"
    # crypt(3) never returns a text that begins with an asterisk.
    assert NO_HASH.startswith("*")


def test_the_secrets_are_labelled_and_the_proxies_name_them(objects: dict[str, Any]) -> None:
    proxies = [one for one in objects.values() if one["kind"] == "Proxy"]
    assert len(proxies) == 2
    for spec in (proxy["spec"] for proxy in proxies):
        assert (spec["provider"], spec["port"]) == ("gcp", PORT)
        assert spec["gcp"].keys() >= {"zone", "machineType", "image"}
        boot = objects[spec["cloudInit"]["secretRef"]["name"]]
        assert boot["metadata"]["labels"] == {CLOUD_INIT_LABEL: "true"}
        assert values(boot)[spec["cloudInit"]["secretRef"]["key"]] == cloud_config()
        login = objects[spec["credentialsSecretRef"]["name"]]
        assert login["metadata"]["labels"] == {CREDENTIALS_LABEL: "true"}
        assert values(login)["username"] == USERNAME


def test_the_password_is_not_in_the_user_data(objects: dict[str, Any]) -> None:
    assert values(objects["gcp-credentials"])["password"] not in cloud_config()

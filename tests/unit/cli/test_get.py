"""get: names, columns, documents, absence."""

import json

import msgspec
import pytest
import yaml

from proxy_operator.adapters.admission.crd import COLUMNS
from proxy_operator.cli.resources import PROXIES
from proxy_operator.domain.condition import ConditionStatus, ConditionType, with_condition
from proxy_operator.domain.proxy import Phase, Proxy, ProxyStatus
from proxy_operator.runtime.objects import ObjectKey
from tests.builders import EPOCH
from tests.unit.cli.conftest import SECRET, Shell, a_proxy_text


@pytest.fixture
def fleet(shell: Shell) -> Shell:
    text = "---".join([a_proxy_text("p2", "b"), a_proxy_text("p1", "a"), SECRET])
    assert shell("apply", "-f", "-", stdin=text).code == 0
    assert shell("apply", "-n", "other", "-f", "-", stdin=a_proxy_text("p3")).code == 0
    return shell


def make_ready(shell: Shell, name: str) -> None:
    async def act(home):
        proxy = (await home.client.get(Proxy, ObjectKey("default", name))).draft()
        proxy.status = ProxyStatus(
            phase=Phase.READY,
            ip="127.0.0.1",
            port=3128,
            provider_id="local/proxy-abc",
            latency_millis=41,
            last_health_check_at=EPOCH,
            observed_generation=1,
            conditions=with_condition(
                (),
                ConditionType.PROVISIONED,
                status=ConditionStatus.TRUE,
                reason="Created",
                message="instance runs\nnext line",
                observed_generation=1,
                now=EPOCH,
            ),
        )
        await home.client.patch_status(proxy)

    shell.with_home(act)


def test_the_columns_are_those_of_the_crd():
    assert PROXIES.header(is_wide=True) == [column["name"].upper() for column in COLUMNS]
    narrow = [column["name"].upper() for column in COLUMNS if not column.get("priority")]
    assert PROXIES.header(is_wide=False) == narrow


def test_a_table_sorted_by_name(fleet: Shell):
    make_ready(fleet, "p1")
    ended = fleet("get", "proxies")
    lines = ended.out.split("\n")
    assert lines[0] == "NAME   PHASE    PROVIDER   IP          LATENCY   AGE"
    assert lines[1].startswith("p1     Ready    local      127.0.0.1   41ms      ")
    assert lines[2].startswith("p2     <none>   local      <none>      <none>    ")
    assert lines[3:] == [""]
    assert "\x1b" not in ended.out


def test_wide_has_more_columns_and_all_namespaces_one_more(fleet: Shell):
    make_ready(fleet, "p1")
    lines = fleet("get", "proxy", "-A", "-o", "wide").out.split("\n")
    assert lines[0].split() == (["NAMESPACE", "NAME", *PROXIES.header(is_wide=True)])
    assert lines[1].split()[-2:] == ["local/proxy-abc", "Created"]
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["default", "p1"],
        ["default", "p2"],
        ["other", "p3"],
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("proxy", "p1"),
        ("proxies", "p1"),
        ("crawlproxy", "p1"),
        ("Proxy", "p1"),
        ("proxies.crawl.example.com", "p1"),
        ("proxy/p1",),
        ("proxy.crawl.example.com/p1",),
    ],
)
def test_kinds_go_by_many_names(fleet: Shell, words):
    assert fleet("get", *words, "-o", "name").out == "proxy.crawl.example.com/p1\n"


def test_two_kinds_are_two_tables(fleet: Shell):
    blocks = fleet("get", "proxy/p1", "secret/s1").out.split("\n\n")
    assert [block.split()[0:2] for block in blocks] == [["NAME", "PHASE"], ["NAME", "TYPE"]]
    assert blocks[1].split("\n")[1].split()[:3] == ["s1", "Opaque", "2"]


def test_labels_select(fleet: Shell):
    assert fleet("get", "proxies", "-l", "team=b", "-o", "name").out == (
        "proxy.crawl.example.com/p2\n"
    )
    assert fleet("get", "proxies", "-l", "team=zzz").err == (
        "No resources found in default namespace.\n"
    )


def test_documents(fleet: Shell):
    make_ready(fleet, "p1")
    document = json.loads(fleet("get", "proxy", "p1", "-o", "json").out)
    assert document["spec"]["healthCheck"]["interval"] == "30s"
    assert document["status"]["providerID"] == "local/proxy-abc"
    assert document["status"]["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert list(document) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert msgspec.convert(document, Proxy).status.latency_millis == 41
    listing = yaml.safe_load(fleet("get", "proxies", "-o", "yaml").out)
    assert listing["kind"] == "List"
    assert [item["metadata"]["name"] for item in listing["items"]] == ["p1", "p2"]
    assert json.loads(fleet("get", "proxies", "-n", "empty", "-o", "json").out)["items"] == []


@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml", "name"])
def test_the_data_of_a_secret_is_never_shown(fleet: Shell, output):
    ended = fleet("get", "secrets", "-o", output)
    assert ended.code == 0
    for text in ("hunter2", "aHVudGVyMi", "crawler"):
        assert text not in ended.out + ended.err
    if output in {"json", "yaml"}:
        assert "<15 bytes>" in ended.out


def test_what_is_found_is_shown_beside_what_is_not(fleet: Shell):
    ended = fleet("get", "proxy", "p1", "nope")
    assert ended.code == 1
    assert ended.out.split("\n")[1].startswith("p1")
    assert ended.err == 'error: proxies "nope" not found in namespace default\n'


@pytest.mark.parametrize(
    ("words", "clause"),
    [
        (("pods",), "no kind is called 'pods'"),
        (("proxy/",), "is not KIND/NAME"),
        (("proxy/p1", "p2"), "do not mix"),
        (("proxy", "p1", "-A"), "drop -A"),
        (("proxy", "p1", "-l", "a=b"), "drop it or the name"),
        (("proxy/p1", "secret/s1", "-w"), "one kind at a time"),
        (("proxies", "-o", "xml"), "--output (PROXY_OPERATOR_OUTPUT): 'xml' is none of"),
        (("proxies", "-n", "Bad_Name"), "--namespace (PROXY_OPERATOR_NAMESPACE)"),
    ],
)
def test_usage_errors(fleet: Shell, words, clause):
    ended = fleet("get", *words)
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("error: ")
    assert clause in ended.err
    assert ended.err.count("\n") == 1


def test_a_data_directory_that_is_not_there(shell: Shell):
    ended = shell("get", "proxies")
    assert ended.code == 1
    assert ended.err.startswith(f"error: data directory {shell.data_dir} does not exist")
    assert not shell.data_dir.exists()

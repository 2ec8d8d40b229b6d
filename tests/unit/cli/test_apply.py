"""apply: all or nothing as far as can be known, kubectl's words."""

import asyncio

from proxy_operator.adapters.embedded.data_dir import DataDir
from proxy_operator.adapters.embedded.operator_lock import OperatorLock
from tests.unit.cli.conftest import SECRET, Shell, a_proxy_text


def test_created_unchanged_configured(shell: Shell):
    file = shell.write("m.yaml", a_proxy_text() + "---" + SECRET)
    ended = shell("apply", "-f", file)
    assert ended.code == 0
    assert ended.out == "proxy.crawl.example.com/p1 created\nsecret/s1 created\n"
    assert ended.err == (
        f"no operator runs on {shell.data_dir}, so what was applied waits: start"
        f" `proxy-operator run --standalone --data-dir {shell.data_dir}`\n"
    )
    assert shell("apply", "-f", file).out == (
        "proxy.crawl.example.com/p1 unchanged\nsecret/s1 unchanged\n"
    )
    changed = a_proxy_text().replace("region: eu", "region: us")
    assert shell("apply", "-f", "-", stdin=changed).out == "proxy.crawl.example.com/p1 configured\n"


def test_several_files_and_directories(shell: Shell):
    shell.write("d/a.yaml", a_proxy_text("a"))
    shell.write("d/b.json", '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}}')
    other = shell.write("c.yaml", a_proxy_text("c"))
    ended = shell("apply", "-f", str(shell.directory / "d"), "-f", other)
    assert ended.out.split("\n")[:-1] == [
        "proxy.crawl.example.com/a created",
        "secret/b created",
        "proxy.crawl.example.com/c created",
    ]


def test_one_fault_and_nothing_is_written(shell: Shell):
    bad = a_proxy_text("bad").replace("provider: local", "provider: moon")
    file = shell.write("m.yaml", a_proxy_text("good") + "---" + bad)
    ended = shell("apply", "-f", file)
    assert ended.code == 1
    assert ended.out == ""
    assert ended.err.startswith(f"error: {file} document 2: ")
    assert "spec.provider" in ended.err
    assert "moon" in ended.err
    assert shell("get", "proxies").err == "No resources found in default namespace.\n"


def test_what_may_not_change_is_known_before_the_first_write(shell: Shell):
    shell("apply", "-f", "-", stdin=a_proxy_text("p2"))
    changed = a_proxy_text("p2").replace("local", "gcp")
    ended = shell("apply", "-f", "-", stdin=a_proxy_text("p1") + "---" + changed)
    assert ended.code == 1
    assert "provider is immutable" in ended.err
    assert shell("get", "proxies", "-o", "name").out == "proxy.crawl.example.com/p2\n"


def test_every_fault_has_its_line(shell: Shell):
    text = "- 1\n---\nkind: Proxy\n---\n" + a_proxy_text().replace("kind: Proxy", "kind: Moxy")
    ended = shell("apply", "-f", "-", stdin=text)
    assert ended.code == 1
    # What is no object at all is found while reading, before admission sees the rest.
    assert ended.err.count("error: standard input document 1") == 1
    ended = shell("apply", "-f", "-", stdin=text.removeprefix("- 1\n---\n"))
    lines = ended.err.split("\n")[:-1]
    assert [line.split(": ")[1] for line in lines] == [
        "standard input document 1",
        "standard input document 2",
    ]
    assert "Moxy" in lines[1]


def test_the_namespace_of_the_line_is_for_documents_without_one(shell: Shell):
    assert shell("apply", "-n", "crawl", "-f", "-", stdin=a_proxy_text()).code == 0
    assert shell("get", "proxies", "-A").out.split("\n")[1].startswith("crawl       p1")
    own = a_proxy_text().replace("name: p1", "name: p1\n  namespace: mine")
    ended = shell("apply", "-n", "crawl", "-f", "-", stdin=own)
    assert ended.code == 1
    assert "'mine', not the 'crawl'" in ended.err


def test_nothing_to_apply_is_a_usage_error(shell: Shell):
    assert shell("apply").code == 2
    assert shell("apply", "-f", str(shell.directory / "nope.yaml")) == (
        1,
        "",
        f"error: {shell.directory}/nope.yaml: no such file or directory\n",
    )


def test_a_printed_secret_is_not_taken_back_over_its_values(shell: Shell):
    shell("apply", "-f", "-", stdin=SECRET)
    printed = shell("get", "secret", "s1", "-o", "yaml").out
    assert shell("apply", "-f", "-", stdin=printed).code == 1
    [size] = [line for line in shell("describe", "secret", "s1").out.split("\n") if "pass" in line]
    assert size == "  password: 15 bytes"


def test_a_printed_proxy_can_be_applied(shell: Shell):
    shell("apply", "-f", "-", stdin=a_proxy_text())
    printed = shell("get", "proxy", "p1", "-o", "json").out
    ended = shell("apply", "-f", "-", stdin=printed)
    assert ended[:2] == (0, "proxy.crawl.example.com/p1 unchanged\n")


def test_beside_an_operator_there_is_no_hint(shell: Shell):
    shell("apply", "-f", "-", stdin=a_proxy_text())

    async def apply(home) -> None:
        async with OperatorLock(DataDir(shell.data_dir)):
            ended = await asyncio.to_thread(shell, "apply", "-f", "-", stdin=a_proxy_text())
            assert ended == (0, "proxy.crawl.example.com/p1 unchanged\n", "")

    shell.with_home(apply)


def test_a_directory_that_no_file_system_takes(shell: Shell):
    ended = shell("apply", "-f", "-", "--data-dir", "/proc/x", stdin=a_proxy_text())
    assert ended.code == 1
    assert ended.err == (
        "error: data directory /proc/x cannot be made: its file system takes no new directory"
        " there; choose another --data-dir\n"
    )


def test_standard_input_is_called_so(shell: Shell):
    for text in ("", "a: b: c", "- 1", "kind: Moxy"):
        ended = shell("apply", "-f", "-", stdin=text)
        assert ended.code == 1
        assert "standard input" in ended.err
        assert " - " not in ended.err
        assert "error: -" not in ended.err

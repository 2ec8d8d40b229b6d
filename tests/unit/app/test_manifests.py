"""What YAML and JSON come to, and what is refused with its place."""

import io
import json
from pathlib import Path

import pytest

from proxy_operator.app.manifests import ManifestError, read_manifests
from proxy_operator.app.yaml_text import to_json_value


def read(tmp_path, text, name="m.yaml", namespace=None):
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_manifests([file], namespace=namespace)


def body(tmp_path, text, **options):
    [manifest] = read(tmp_path, text, **options)
    return manifest.body


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-01", "2026-01-01"),
        ("12:30", "12:30"),
        ("1_000", 1000),
        ("0x10", 16),
        ("0o17", 15),
        ("017", 15),
        ("08", "08"),
        ("1e3", 1000.0),
        ("1.5", 1.5),
        ("-7", -7),
        ("yes", True),
        ("~", None),
        ('"5"', "5"),
        ("1.2.3.4", "1.2.3.4"),
        ("3128:3128", "3128:3128"),
    ],
)
def test_scalars_mean_what_the_kubernetes_api_takes_them_for(tmp_path, text, value):
    found = body(tmp_path, f"a: {text}")["a"]
    assert found == value
    assert type(found) is type(value)


def test_keys_become_text(tmp_path):
    assert body(tmp_path, "{1: a, true: b, x: c}") == {"1": "a", "true": "b", "x": "c"}


def test_a_key_that_is_the_same_text_twice_is_refused(tmp_path):
    with pytest.raises(ManifestError, match="line 1, column 8: key '1' stands twice"):
        read(tmp_path, "{1: a, '1': b}")


def test_merged_members_give_way_to_own_ones(tmp_path):
    text = "base: &b {x: 1, y: 1}\nsub:\n  <<: *b\n  y: 2\n"
    assert body(tmp_path, text)["sub"] == {"x": 1, "y": 2}


def test_documents_lists_and_empty_ones(tmp_path):
    text = "---\n---\na: 1\n---\nkind: List\nitems:\n- b: 1\n- c: 1\n---\n# nothing\n"
    found = read(tmp_path, text)
    assert [m.body for m in found] == [{"a": 1}, {"b": 1}, {"c": 1}]
    assert found[2].source.endswith("m.yaml document 3 item 2")


def test_json_with_tabs_and_a_byte_order_mark(tmp_path):
    text = b"\xef\xbb\xbf" + json.dumps({"a": {"b": 1}}, indent="\t").encode()
    assert body(tmp_path, text) == {"a": {"b": 1}}


@pytest.mark.parametrize("between", ["", "\n", " \n\n"])
def test_several_documents_in_one_json_text(tmp_path, between):
    file = tmp_path / "m.json"
    file.write_text(f'{{"a": 1}}{between}{{"a": 2}}')
    with pytest.raises(ManifestError) as caught:
        read_manifests([file], namespace=None)
    assert str(caught.value).startswith(f"{file} line ")
    assert str(caught.value).endswith(
        ": a second JSON document begins here: make the objects the items of one List, or put a"
        " line --- between them"
    )
    file.write_text('{"a": 1}\n---\n{"a": 2}')
    assert [m.body["a"] for m in read_manifests([file], namespace=None)] == [1, 2]


def test_flow_mappings_that_are_no_json_are_yaml(tmp_path):
    assert body(tmp_path, "{a: b}") == {"a": "b"}


def test_a_directory_gives_its_manifests_by_name(tmp_path):
    for name in ("b.yml", "a.json", "c.txt", "d.yaml"):
        (tmp_path / name).write_text(f'{{"name": "{name}"}}')
    found = read_manifests([tmp_path], namespace=None)
    assert [m.body["name"] for m in found] == ["a.json", "b.yml", "d.yaml"]


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a: 1")))
    [manifest] = read_manifests([Path("-")], namespace=None)
    assert manifest == ("standard input", {"a": 1})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: b: c", "line 1, column 5"),
        ("a: 1\na: 2", "key 'a' stands twice"),
        ('{"a": 1, "a": 2}', "key 'a' stands twice"),
        ("a: .nan", "not a number that JSON can say"),
        ("a: !!python/object:os.system {}", "could not determine a constructor"),
        ("? [1, 2]\n: x", "line 1, column 3: a key is not text"),
        ("- 1", "not an object"),
        ("just text", "not an object"),
        ("", "no objects in"),
        (b"\xff\xfe", "not UTF-8"),
        ("a: &a [*a]", "nested too deeply"),
        ("[" * 70 + "]" * 70, "nested too deeply"),
        ("[" * 3000, r"nested too deeply|nesting depth"),
        ("a: \x07", "character 4 is not allowed in YAML"),
    ],
)
def test_a_fault_is_one_sentence_with_its_place(tmp_path, text, words):
    with pytest.raises(ManifestError, match=words) as caught:
        read(tmp_path, text)
    [message] = caught.value.messages
    assert "m.yaml" in message
    assert "\n" not in message


def test_aliases_cannot_explode(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(ManifestError, match="too large once its aliases are resolved"):
        read(tmp_path, "\n".join(lines))


def test_every_fault_is_told_at_once(tmp_path):
    (tmp_path / "a.yaml").write_text("a: b: c")
    (tmp_path / "b.yaml").write_text("- 1")
    (tmp_path / "c.yaml").write_text("a: 1")
    with pytest.raises(ManifestError) as caught:
        read_manifests([tmp_path, tmp_path / "missing.yaml"], namespace=None)
    assert [m.split(":")[0].rsplit("/")[-1] for m in caught.value.messages] == [
        "a.yaml line 1, column 5",
        "b.yaml",
        "missing.yaml",
    ]


def placed_by_default(tmp_path, text):
    file = tmp_path / "m.yaml"
    file.write_text(text)
    [manifest] = read_manifests([file], namespace=None, default="context")
    return manifest.body["metadata"]["namespace"]


def test_the_namespace_is_filled_in_and_never_overruled(tmp_path):
    text = "metadata: {name: p}"
    assert body(tmp_path, text)["metadata"]["namespace"] == "default"
    assert body(tmp_path, text, namespace="crawl")["metadata"]["namespace"] == "crawl"
    own = "metadata: {name: p, namespace: mine}"
    assert body(tmp_path, own)["metadata"]["namespace"] == "mine"
    assert body(tmp_path, own, namespace="mine")["metadata"]["namespace"] == "mine"
    assert placed_by_default(tmp_path, text) == "context"
    assert placed_by_default(tmp_path, own) == "mine"
    with pytest.raises(ManifestError, match="is 'mine', not the 'crawl' asked for"):
        body(tmp_path, own, namespace="crawl")


def test_a_value_json_cannot_say_is_refused():
    with pytest.raises(ValueError, match="type bytes"):
        to_json_value({"a": b"x"})

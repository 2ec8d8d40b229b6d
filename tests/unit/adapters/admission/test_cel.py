import pytest

from proxy_operator.adapters.admission.cel import Cel, CelError, check_rules
from proxy_operator.runtime.errors import FieldError

CEL = Cel()


def broken(schema, value, old=None, errors=()):
    found = list(errors)
    check_rules(CEL, schema, value, old, found, path="spec")
    return [(error.field, error.rule) for error in found]


def having(*rules, **members):
    written = [{"rule": rule, "message": rule} for rule in rules]
    return {**members, "x-kubernetes-validations": written}


def test_holds_or_not():
    holds = CEL.bind({"a": 1})
    assert holds("self.a == 1")
    assert not holds("self.a == 2")


@pytest.mark.parametrize(
    "expression",
    [
        "self.a ==",
        "self.missing == 1",
        "self.a + 1",
        "size(self.a) > 0",
        "unknown(self)",
        "1/0 == 1",
    ],
)
def test_every_failure_is_raised(expression):
    holds = CEL.bind({"a": 1})
    for _ in range(2):
        with pytest.raises(CelError):
            holds(expression)


def test_a_value_that_is_no_data_is_a_failure():
    with pytest.raises(CelError):
        CEL.bind({"a": {1, 2}})("self.a == 1")


@pytest.mark.parametrize("text", ["self.a ==", "unknown(self)", "other.a == 1", ""])
def test_what_does_not_compile_is_no_expression(text):
    assert not CEL.is_expression(text)
    assert CEL.is_expression("self.a == oldSelf.a")


def test_dollar_is_the_end_of_the_text():
    assert not CEL.bind("a\n")("self.matches('^a$')")


def test_verdicts_on_texts_are_not_mixed_up():
    small = Cel()
    for text in ("a", "b", "a", "b"):
        assert small.bind(text)("self == 'a'") is (text == "a")
        assert small.bind(text)("self == 'b'") is (text == "b")


def test_a_broken_rule_is_reported_at_its_field():
    schema = having("self.a == 1", type="object", properties={"a": {"type": "integer"}})
    schema["x-kubernetes-validations"][0]["fieldPath"] = ".a"
    assert broken(schema, {"a": 1}) == []
    assert broken(schema, {"a": 2}) == [("spec.a", "self.a == 1")]


def test_a_transition_rule_needs_an_old_value():
    schema = having("self == oldSelf", type="string")
    assert broken(schema, "new") == []
    assert broken(schema, "new", "new") == []
    assert broken(schema, "new", "old") == [("spec", "self == oldSelf")]


def test_rules_of_entries_and_items_are_checked():
    text = having("self == 'a'", type="string")
    entries = {"type": "object", "additionalProperties": text}
    items = {"type": "array", "items": text}
    assert broken(entries, {"k": "a", "x y": "b"}) == [('spec["x y"]', "self == 'a'")]
    assert broken(items, ["a", None, "b"]) == [("spec[2]", "self == 'a'")]


def test_a_rule_that_cannot_be_evaluated_counts_as_broken():
    assert broken(having("self.a == 1", type="object"), {}) == [("spec", "self.a == 1")]


def test_a_rule_that_cannot_be_evaluated_adds_nothing_to_a_known_fault():
    known = ("spec.a", "must be an integer")
    schema = having("self.a == 1", type="object")
    assert broken(schema, {}, errors=[FieldError("spec.a", "", "must be an integer")]) == [known]

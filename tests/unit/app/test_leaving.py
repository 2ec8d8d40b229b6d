"""What keeps an object, in words."""

import pytest

from proxy_operator.app.leaving import has_instance, names_of, obstacle, reason_for_all
from proxy_operator.domain.condition import ConditionStatus, ConditionType, with_condition
from proxy_operator.domain.meta import ObjectMeta
from proxy_operator.domain.names import FINALIZER
from proxy_operator.domain.proxy import ProxyStatus
from proxy_operator.domain.secret import Secret
from tests.builders import EPOCH, a_proxy

X, Y = "a.example/x", "a.example/y"


def a_leaving(*finalizers, name="p1", message=None):
    conditions = with_condition(
        (),
        ConditionType.PROVISIONED,
        status=ConditionStatus.FALSE,
        reason="ProviderError",
        message=message or "",
        observed_generation=1,
        now=EPOCH,
    )
    return a_proxy(
        name,
        meta={"finalizers": finalizers, "deletion_timestamp": EPOCH},
        status=ProxyStatus(conditions=conditions if message else ()),
    )


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        (a_leaving(FINALIZER), None),
        (a_leaving(FINALIZER, X), None),
        (a_leaving(FINALIZER, message="the instance is being deleted"), None),
        (a_leaving(FINALIZER, message="deletion waits: no rights"), "waiting for p1: no rights"),
        (
            a_leaving(FINALIZER, X, message="QuotaExceeded: deletion waits: too\n many"),
            "waiting for p1: too many",
        ),
        (a_proxy("p1", meta={"finalizers": (X,)}), None),
        (a_leaving(X), f"waiting for p1: the finalizer {X} of somebody else is still set"),
        (
            a_leaving(X, Y),
            f"waiting for p1: the finalizers {X}, {Y} of somebody else are still set",
        ),
        (
            Secret(
                metadata=ObjectMeta(name="s", deletion_timestamp=EPOCH, finalizers=(FINALIZER,)),
                data={},
            ),
            f"waiting for s: the finalizer {FINALIZER} of somebody else is still set",
        ),
    ],
    ids=[
        "ours",
        "ours first",
        "on its way",
        "held up",
        "was seen",
        "not deleting",
        "one",
        "two",
        "secret",
    ],
)
def test_what_holds_an_object_up_is_named(obj, said):
    assert obstacle(obj) == said


def test_an_instance_is_there_as_long_as_our_finalizer():
    assert has_instance(a_leaving(X, FINALIZER))
    assert not has_instance(a_leaving(X))


def test_one_short_reason_is_told_of_all():
    held = [a_leaving(FINALIZER, name=name, message="deletion waits: no rights") for name in "ab"]
    assert reason_for_all(held) == " (no rights)"
    assert reason_for_all([*held, a_leaving(X)]) == ""
    assert reason_for_all([*held, a_leaving(FINALIZER)]) == ""
    assert reason_for_all([a_leaving(FINALIZER, message="deletion waits: " + "x" * 201)]) == ""
    assert reason_for_all([]) == ""


def test_a_few_are_named_and_the_others_counted():
    assert names_of([a_proxy(name) for name in "abc"]) == "a, b, c"
    assert names_of([a_proxy(name) for name in "abcde"]) == "a, b, c and 2 more"

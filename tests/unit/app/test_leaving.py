"""What keeps an object, in words."""

import pytest

from proxy_operator.app.leaving import has_instance, names_of, obstacle
from proxy_operator.domain.meta import ObjectMeta
from proxy_operator.domain.names import FINALIZER
from proxy_operator.domain.secret import Secret
from tests.builders import EPOCH, a_proxy

X, Y = "a.example/x", "a.example/y"


def a_leaving(*finalizers):
    return a_proxy("p1", meta={"finalizers": finalizers, "deletion_timestamp": EPOCH})


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        (a_leaving(FINALIZER), None),
        (a_leaving(FINALIZER, X), None),
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
    ids=["ours", "ours first", "not deleting", "one", "two", "secret"],
)
def test_what_waiting_alone_does_not_end_is_named(obj, said):
    assert obstacle(obj) == said


def test_an_instance_is_there_as_long_as_our_finalizer():
    assert has_instance(a_leaving(X, FINALIZER))
    assert not has_instance(a_leaving(X))


def test_a_few_are_named_and_the_others_counted():
    assert names_of([a_proxy(name) for name in "abc"]) == "a, b, c"
    assert names_of([a_proxy(name) for name in "abcde"]) == "a, b, c and 2 more"

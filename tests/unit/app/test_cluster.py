"""What `down` says when it cannot stand for election."""

import pytest

from proxy_operator.adapters.kube.resources import NAMESPACE, Document, Resource
from proxy_operator.app.cluster import lock_obstacle
from proxy_operator.runtime.errors import ForbiddenError, NotFoundError, ObjectError
from proxy_operator.runtime.objects import ObjectKey


class Answering:
    """A cluster with one answer, about one namespace."""

    def __init__(self, answer: Document | ObjectError) -> None:
        self._answer = answer

    async def get(self, resource: Resource, key: ObjectKey) -> Document:
        assert (resource, key) == (NAMESPACE, ObjectKey("", "ops"))
        if isinstance(self._answer, ObjectError):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (NotFoundError("no"), "namespace ops does not exist"),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "namespace ops is on its"),
    ],
)
async def test_a_namespace_that_takes_no_lease_is_named(answer, said):
    text = await lock_obstacle(Answering(answer), "ops")
    assert text is not None
    assert text.startswith(said)
    assert "--leader-namespace" in text


@pytest.mark.parametrize("answer", [{"metadata": {}}, ForbiddenError("no")])
async def test_nothing_is_said_where_nothing_is_known_to_be_wrong(answer):
    assert await lock_obstacle(Answering(answer), "ops") is None

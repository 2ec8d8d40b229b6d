"""Applying many manifests: in order, several at a time, and what a failing write leaves."""

import dataclasses
from contextlib import aclosing

import pytest

from proxy_operator.app.applying import apply_all
from proxy_operator.app.client import open_home
from proxy_operator.app.manifests import Manifest, ManifestError
from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.errors import UnavailableError
from tests.builders import a_manifest, a_proxy

MANY = 50


class Refusing:
    """A client that cannot write one name; everything else is the real one's."""

    def __init__(self, client, name):
        self._client = client
        self._name = name

    def __getattr__(self, verb):
        return getattr(self._client, verb)

    async def apply(self, manifest):
        if manifest["metadata"]["name"] == self._name:
            raise UnavailableError("the disk is full")
        return await self._client.apply(manifest)


@pytest.fixture
async def home(tmp_path):
    async with open_home(tmp_path / "data", create=True) as home:
        yield home


@pytest.fixture
def manifests():
    return [Manifest(f"m{n}", a_manifest(a_proxy(f"p{n}"))) for n in range(MANY)]


async def apply(home, manifests):
    """Return the error, or None, and the name and outcome of every answer before it."""
    answers = []

    def note(applied):
        answers.append((applied.object.metadata.name, str(applied.outcome)))

    try:
        async with aclosing(apply_all(home, manifests)) as stream:
            async for applied in stream:
                note(applied)
    except ManifestError as err:
        return str(err), answers
    return None, answers


async def test_answers_come_in_the_order_of_the_manifests(home, manifests):
    for outcome in ("created", "unchanged"):
        assert await apply(home, manifests) == (None, [(f"p{n}", outcome) for n in range(MANY)])


async def test_of_two_manifests_for_one_object_the_later_wins(home):
    twice = [
        Manifest(f"m{n}", a_manifest(a_proxy("p", attributes={"turn": str(n)}))) for n in range(9)
    ]
    _, answers = await apply(home, twice)
    assert [outcome for _, outcome in answers] == ["created", *["configured"] * 8]
    (stored,) = (await home.client.list(Proxy)).items
    assert stored.spec.attributes == {"turn": "8"}


async def test_every_write_done_is_told_before_the_one_that_failed(home, manifests):
    broken = dataclasses.replace(home, client=Refusing(home.client, "p20"))
    error, answers = await apply(broken, manifests)
    assert error == "m20: the disk is full"
    told = [name for name, _ in answers]
    stored = [p.metadata.name for p in (await home.client.list(Proxy)).items]
    assert sorted(told) == sorted(stored)
    assert set(told) >= {f"p{n}" for n in range(20)}
    assert "p49" not in told

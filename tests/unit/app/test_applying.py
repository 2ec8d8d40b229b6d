"""Applying many manifests: in order, several at a time, and what a failing write leaves."""

import dataclasses
from contextlib import aclosing

import pytest

from proxy_operator.app.applying import apply_all
from proxy_operator.app.client import open_home
from proxy_operator.app.manifests import Manifest, ManifestError
from proxy_operator.app.settings import HomeAddress
from proxy_operator.domain.names import FINALIZER
from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.errors import UnavailableError
from tests.builders import a_manifest, a_proxy, a_secret

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
    async with open_home(HomeAddress(data_dir=tmp_path / "data"), create=True) as home:
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


def with_finalizers(obj, *names):
    body = a_manifest(obj)
    return Manifest("m", {**body, "metadata": {**body["metadata"], "finalizers": [*names]}})


@pytest.mark.parametrize(
    ("obj", "names"),
    [
        (a_proxy("p"), ["example.com/a"]),
        (a_proxy("p"), [FINALIZER, "example.com/a"]),
        # Ours means nothing on a Secret: no operator would take it off.
        (a_secret("s", username=b"", password=b""), [FINALIZER]),
    ],
    ids=["foreign", "beside ours", "secret"],
)
async def test_a_finalizer_that_nothing_here_removes_is_refused(home, obj, names):
    manifest = with_finalizers(obj, *names)
    if obj.kind == "Secret":
        manifest.body["data"] = {}
    error, answers = await apply(home, [manifest])
    assert answers == []
    assert error is not None
    assert error.startswith(f'm: {obj.kind} "default/{obj.metadata.name}" is invalid: ')
    assert "metadata.finalizers: must name no finalizer of somebody else" in error
    assert f'(found ["{names[-1]}"])' in error


async def test_finalizers_as_they_are_printed_can_be_applied(home):
    ours = with_finalizers(a_proxy("p"), FINALIZER)
    assert await apply(home, [ours]) == (None, [("p", "created")])
    await home.client.create(a_proxy("q", meta={"finalizers": ("example.com/a",)}))
    theirs = with_finalizers(a_proxy("q"), "example.com/a")
    assert await apply(home, [theirs]) == (None, [("q", "unchanged")])

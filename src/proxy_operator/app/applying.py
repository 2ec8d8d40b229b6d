"""Applying manifests: all are checked before the first is written."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

from proxy_operator.app.client import Home
from proxy_operator.app.leaving import foreign_finalizers
from proxy_operator.app.manifests import Manifest, ManifestError
from proxy_operator.domain.kinds import kind_named, to_document
from proxy_operator.runtime.errors import FieldError, InvalidError, NotFoundError, ObjectError
from proxy_operator.runtime.objects import Applied, ObjectKey

# Writes asked for together share a commit, and its sync. More would keep an operator beside this
# process waiting for its turn to write.
_TOGETHER: Final = 16


async def check_all(home: Home, manifests: Sequence[Manifest]) -> None:
    """Hold every manifest against admission and the object it would change. ManifestError."""
    faults: list[str] = []
    for manifest in manifests:
        try:
            await _check(home, manifest)
        except InvalidError as err:
            faults.append(f"{manifest.source}: {err}")
    if faults:
        raise ManifestError(*faults)


async def apply_all(home: Home, manifests: Sequence[Manifest]) -> AsyncGenerator[Applied, None]:
    """Check all manifests, then apply them in order and yield each answer. ManifestError.

    A write that fails between others does not undo them, and a few after it may be done, which are
    yielded too: applying again continues.
    """
    await check_all(home, manifests)
    for first in range(0, len(manifests), _TOGETHER):
        some = manifests[first : first + _TOGETHER]
        answers = await asyncio.gather(*(_apply(home, manifest) for manifest in some))
        for answer in answers:
            if not isinstance(answer, str):
                yield answer
        if faults := [answer for answer in answers if isinstance(answer, str)]:
            raise ManifestError(*faults)


async def _apply(home: Home, manifest: Manifest) -> Applied | str:
    """Return the answer, or a sentence that says why there is none."""
    try:
        return await home.client.apply(manifest.body)
    except ObjectError as err:
        return f"{manifest.source}: {err}"


async def _check(home: Home, manifest: Manifest) -> None:
    """Hold one manifest against everything that `apply` would refuse. InvalidError."""
    admitted = home.admission.admit(manifest.body)
    kind = kind_named(admitted["kind"])
    meta = admitted["metadata"]
    if kind is None:
        return
    kept: Sequence[str] = ()
    try:
        old = await home.client.get(kind.type, ObjectKey(meta["namespace"], meta["name"]))
    except NotFoundError:
        pass
    else:
        kept = old.metadata.finalizers
        # Read back, defaults are left out: rules of transition compare complete objects.
        home.admission.admit(manifest.body, home.admission.admit(to_document(old)))
    _refuse_finalizers(kind.type, meta, kept)


def _refuse_finalizers(kind: type[object], meta: Mapping[str, Any], kept: Sequence[str]) -> None:
    """Refuse to put a finalizer on an object that nothing here would take off again.

    `create` of the port takes any, as the Kubernetes API does. What an object has already may
    stand in its manifest, because `get -o yaml` shows it.
    """
    found: Sequence[str] = meta.get("finalizers", ())
    foreign = [name for name in foreign_finalizers(kind, found) if name not in kept]
    if foreign:
        rule = (
            "must name no finalizer of somebody else: apply could not take it off again, and the"
            " object could never be deleted"
        )
        wrong = FieldError("metadata.finalizers", json.dumps(foreign), rule)
        word = kind.__name__
        raise InvalidError(f'{word} "{meta["namespace"]}/{meta["name"]}"', (wrong,))

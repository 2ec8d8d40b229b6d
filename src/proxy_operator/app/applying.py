"""Applying manifests: all are checked before the first is written."""

from collections.abc import AsyncGenerator, Sequence

from proxy_operator.app.client import Home
from proxy_operator.app.manifests import Manifest, ManifestError
from proxy_operator.domain.kinds import kind_named, to_document
from proxy_operator.runtime.errors import InvalidError, NotFoundError, ObjectError
from proxy_operator.runtime.objects import Applied, ObjectKey


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

    A write that fails between others does not undo them: applying again continues.
    """
    await check_all(home, manifests)
    for manifest in manifests:
        try:
            yield await home.client.apply(manifest.body)
        except ObjectError as err:
            raise ManifestError(f"{manifest.source}: {err}") from err


async def _check(home: Home, manifest: Manifest) -> None:
    admitted = home.admission.admit(manifest.body)
    kind = kind_named(admitted["kind"])
    meta = admitted["metadata"]
    if kind is None:
        return
    try:
        old = await home.client.get(kind.type, ObjectKey(meta["namespace"], meta["name"]))
    except NotFoundError:
        return
    # Read back, defaults are left out: rules of transition compare complete objects.
    home.admission.admit(manifest.body, home.admission.admit(to_document(old)))

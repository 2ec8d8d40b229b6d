"""Which home a process works in, by its settings. Each home is imported where it is used."""

import functools

from proxy_operator.app.operating import OperatorHome, operate
from proxy_operator.app.serving import Operator
from proxy_operator.app.session import Narrator, Searched
from proxy_operator.app.settings import Settings


def operator_of(settings: Settings) -> Operator:
    """Return the operator to serve."""
    return functools.partial(operate, home=_home_of(settings))


def _home_of(settings: Settings) -> OperatorHome:
    if settings.standalone:
        from proxy_operator.app.standalone import StandaloneHome  # noqa: PLC0415

        return StandaloneHome(settings)
    from proxy_operator.app.cluster import ClusterHome  # noqa: PLC0415

    return ClusterHome(settings)


async def take_down(settings: Settings, narrator: Narrator) -> Searched:
    """Delete every Proxy, and return where this process looked for what they may have left."""
    if settings.standalone:
        from proxy_operator.app.standalone import down  # noqa: PLC0415
    else:
        from proxy_operator.app.cluster import down  # noqa: PLC0415
    return await down(settings, narrator)

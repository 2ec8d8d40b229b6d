"""The standalone home: an operator on the objects of a data directory."""

import asyncio
from collections.abc import Callable

from proxy_operator.app.serving import Listening
from proxy_operator.app.session import Narrator
from proxy_operator.app.settings import Settings


async def run(
    settings: Settings, *, stop: asyncio.Event, on_started: Callable[[Listening], None]
) -> None:
    """Work until `stop` is set; `app.serving.Operator` says the rest."""
    raise NotImplementedError


async def down(settings: Settings, narrator: Narrator) -> None:
    """Delete every Proxy and return when no instance is left."""
    raise NotImplementedError

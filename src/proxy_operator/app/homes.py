"""Which home a process works in, by its settings."""

import functools

from proxy_operator.app.operating import operate
from proxy_operator.app.serving import Operator
from proxy_operator.app.settings import Settings
from proxy_operator.app.standalone import StandaloneHome


def operator_of(settings: Settings) -> Operator:
    """Return the operator to serve."""
    return functools.partial(operate, home=StandaloneHome(settings))

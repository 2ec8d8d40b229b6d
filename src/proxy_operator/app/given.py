"""What was given for an option: on the command line, in a variable, or by default.

A flag wins over its variable, a variable over the default; an empty variable counts as absent.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from proxy_operator.app.options import OPTIONS, PREFIX, Option, options_of

DEBUG_VARIABLE: Final = f"{PREFIX}DEBUG"
# A Service called proxy-operator puts these into every Pod of its namespace (Kubernetes,
# "Accessing the Service", environment variables).
_OF_A_SERVICE: Final = re.compile(
    rf"{PREFIX}(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)"
)

Given = Mapping[str, str | bool | Sequence[str] | None]
"""What stood on the command line, by `Option.parameter`; None is absent."""


class SettingError(ValueError):
    """A setting is wrong. The message is one sentence naming flag and variable."""


def label(option: Option) -> str:
    """Name an option for people: `--gc-interval (PROXY_OPERATOR_GC_INTERVAL)`."""
    if option.flag and option.variable:
        return f"{option.flag} ({option.variable})"
    return option.flag or option.variable


def read_options(command: str, given: Given, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the value of every option of a command, by `Option.place`. SettingError."""
    return {option.place: read(option, given, environ) for option in options_of(command)}


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each variable that looks like ours and is none."""
    known = {option.variable for option in OPTIONS} | {DEBUG_VARIABLE}
    found = [
        name
        for name in sorted(environ)
        if name.startswith(PREFIX) and name not in known and not _OF_A_SERVICE.fullmatch(name)
    ]
    return [f"the variable {name} is unknown and ignored{_meant(name, known)}" for name in found]


def _meant(name: str, known: Iterable[str]) -> str:
    import difflib  # noqa: PLC0415 - most command lines need it never

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    return f": did you mean {near[0]}?" if near else ""


def read(option: Option, given: Given, environ: Mapping[str, str]) -> Any:  # noqa: ANN401 - the kind decides
    """Return the value of one option. SettingError."""
    flag = given.get(option.parameter)
    if isinstance(flag, bool):
        return flag
    texts: Sequence[str]
    variable = environ.get(option.variable, "") if option.variable else ""
    if flag is not None and flag != []:
        texts = [flag] if isinstance(flag, str) else list(flag)
    elif variable:
        texts = variable.split(",") if option.is_repeatable else [variable]
    else:
        texts = [] if option.default is None else [option.default]
    try:
        parsed = tuple(option.kind.parse(text) for text in texts)
    except ValueError as err:
        raise SettingError(f"{label(option)}: {err}") from err
    if option.is_repeatable:
        return parsed
    return parsed[-1] if parsed else None


def named(place: str) -> str:
    """Name an option of run for people, by its place."""
    return label(next(option for option in options_of("run") if option.place == place))

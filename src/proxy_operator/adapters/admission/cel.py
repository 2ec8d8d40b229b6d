"""CEL as this project uses it: compiled once, evaluated over plain data, and errors are raised.

The library is loaded on first use: `--help` must not pay for it.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

from proxy_operator.adapters.admission.schema import Schema
from proxy_operator.adapters.admission.structural import at, shown
from proxy_operator.runtime.errors import FieldError

_VALIDATIONS: Final = "x-kubernetes-validations"
_MOST_TEXTS: Final = 32768
_LONGEST_KEPT: Final = 256
_FAILURES: Final = (RuntimeError, TypeError, ValueError, OverflowError, RecursionError)


class CelError(Exception):
    """The expression has no truth value for this input, or is no expression."""


class Cel:
    """Evaluates boolean expressions over `self` and `oldSelf`.

    The library returns evaluation errors as values and raises RuntimeError for the rest; here
    both are CelError. Not for use by several threads at once.
    """

    def __init__(self) -> None:
        self._programs: dict[str, Any] = {}
        self._texts: dict[tuple[str, str], bool] = {}

    @functools.cached_property
    def _env(self) -> Any:  # noqa: ANN401 - the library is not typed
        from cel_expr_python import cel  # noqa: PLC0415 - 14 MB that `--help` does not need

        return cel.NewEnv(variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN})

    def bind(self, value: object, old: object = None) -> Callable[[str], bool]:
        """Return a function that tells whether an expression holds for these values.

        It raises CelError when the expression cannot be compiled or evaluated.
        """
        if isinstance(value, str) and len(value) <= _LONGEST_KEPT and old is None:
            return functools.partial(self._holds_for_text, value)
        activation = functools.cache(lambda: self._activation(value, old))
        return lambda expression: self._holds(expression, activation())

    def is_expression(self, text: str) -> bool:
        """Tell whether a text compiles: it parses, and every name and function exists."""
        try:
            self._compiled(text)
        except _FAILURES:
            return False
        return True

    def _activation(self, value: object, old: object) -> Any:  # noqa: ANN401 - not typed
        try:
            return self._env.Activation({"self": value, "oldSelf": old})
        except _FAILURES as err:
            raise CelError(str(err)) from err

    def _holds_for_text(self, text: str, expression: str) -> bool:
        # Every evaluation compiles its patterns anew, and a fleet's specs repeat each other.
        key = (expression, text)
        known = self._texts.get(key)
        if known is None:
            known = self._holds(expression, self._activation(text, None))
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            self._texts[key] = known
        return known

    def _holds(self, expression: str, activation: Any) -> bool:  # noqa: ANN401 - not typed
        try:
            result = self._compiled(expression).eval(activation).value()
        except _FAILURES as err:
            raise CelError(str(err)) from err
        if not isinstance(result, bool):
            raise CelError(f"{expression!r} gave {result!r}")
        return result

    def _compiled(self, expression: str) -> Any:  # noqa: ANN401 - the library is not typed
        program = self._programs.get(expression)
        if program is None:
            program = self._programs[expression] = self._env.compile(expression)
        return program


def check_rules(
    cel: Cel,
    schema: Schema,
    value: Any,  # noqa: ANN401 - any JSON value
    old: Any,  # noqa: ANN401
    errors: list[FieldError],
    *,
    path: str,
) -> None:
    """Append to `errors` the rules that a value breaks, those of inner nodes first.

    A transition rule (one that names oldSelf) needs an old value at the same place; items of a
    list have none. A rule that cannot be evaluated counts as broken, as in the API server, unless
    an error already says why. A field is blamed once. Values must be sound: see `sound_part`.
    """
    if value is None:
        return
    if isinstance(value, dict) and schema.get("type") == "object":
        properties: dict[str, Schema] = schema.get("properties", {})
        others: Schema = schema.get("additionalProperties", {})
        earlier = old if isinstance(old, dict) else {}
        for key, item in value.items():
            if key in properties:
                inner = f"{path}.{key}"
                check_rules(cel, properties[key], item, earlier.get(key), errors, path=inner)
            elif _VALIDATIONS in others:
                check_rules(cel, others, item, earlier.get(key), errors, path=at(path, str(key)))
    elif isinstance(value, list) and schema.get("type") == "array":
        for index, item in enumerate(value):
            check_rules(cel, schema["items"], item, None, errors, path=f"{path}[{index}]")
    if _VALIDATIONS in schema:
        rules = [r for r in schema[_VALIDATIONS] if old is not None or "oldSelf" not in r["rule"]]
        _check_here(cel.bind(value, old), rules, value, errors, path)


def _check_here(
    holds: Callable[[str], bool],
    rules: list[dict[str, str]],
    value: Any,  # noqa: ANN401
    errors: list[FieldError],
    path: str,
) -> None:
    for rule in rules:
        field = rule.get("fieldPath", "")
        if any(error.field == path + field for error in errors):
            continue
        try:
            if holds(rule["rule"]):
                continue
        except CelError:
            if any(error.field.startswith(path) for error in errors):
                continue
        found = value.get(field[1:]) if field and isinstance(value, dict) else value
        errors.append(
            FieldError(path + field, "" if found is None else shown(found), rule["message"])
        )

"""instances.aggregatedList: filters, pages, and what is said about zones that do not answer."""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tests.fakes.compute.conduct import Conduct
from tests.fakes.compute.machine import API, Machine
from tests.fakes.compute.messages import RefusedError
from tests.fakes.compute.refusals import invalid, unavailable

MAX_RESULTS: Final = 500

Predicate = Callable[[Machine], bool]

_TERM: Final = re.compile(
    r'\s*(labels\.[a-z][a-z0-9_-]*|name|status|zone)\s*(=|!=|:)\s*("[^"]*"|\*|[A-Za-z0-9_.-]+)\s*'
)


class ListQuery(NamedTuple):
    """What a client asks for."""

    filter: str
    max_results: int
    page_token: str
    is_partial_fine: bool


def read_query(query: Mapping[str, str]) -> ListQuery:
    """Return the query of a list call. RefusedError when a number is out of range."""
    wanted = int(query.get("maxResults", MAX_RESULTS))
    if not 0 <= wanted <= MAX_RESULTS:
        raise invalid("maxResults", f"'{wanted}' is not from 0 to {MAX_RESULTS}")
    return ListQuery(
        filter=query.get("filter", ""),
        max_results=wanted or MAX_RESULTS,
        page_token=query.get("pageToken", ""),
        is_partial_fine=query.get("returnPartialSuccess") == "true",
    )


def aggregated_list(
    project: str, machines: Sequence[Machine], conduct: Conduct, query: ListQuery
) -> dict[str, Any]:
    """Return one page. `machines` are all of the project, by zone and name. RefusedError."""
    hidden = sorted(conduct.unreachable & conduct.zones.keys())
    if hidden and not query.is_partial_fine:
        raise unavailable()
    keeps = predicate_of(query.filter)
    after = _read_token(query)
    seen = [
        one
        for one in machines
        if one.zone not in hidden and (one.zone, one.name) > after and keeps(one)
    ]
    size = min(query.max_results, conduct.page_size)
    page = seen[:size]
    scopes: dict[str, Any] = {f"zones/{zone}": _empty(zone) for zone in sorted(conduct.zones)}
    for zone in {one.zone for one in page}:
        here = [one.document() for one in page if one.zone == zone]
        scopes[f"zones/{zone}"] = {"instances": here}
    shown: dict[str, Any] = {
        "kind": "compute#instanceAggregatedList",
        "id": f"projects/{project}/aggregated/instances",
        "selfLink": f"{API}/projects/{project}/aggregated/instances",
        "items": scopes,
    }
    if len(seen) > size:
        shown["nextPageToken"] = _write_token(page[-1], query)
    if hidden:
        _confess(shown, project, hidden, conduct)
    return shown


def _confess(shown: dict[str, Any], project: str, hidden: Sequence[str], conduct: Conduct) -> None:
    """Say that something is missing, in the places where this cloud says so."""
    ways = conduct.unreachable_is_said_by
    if "unreachables" in ways:
        shown["unreachables"] = [f"projects/{project}/zones/{zone}" for zone in hidden]
    if "warning" in ways:
        shown["warning"] = _warning("PARTIAL_SUCCESS", "scope", f"zones/{hidden[0]}")
    for zone in hidden:
        if "scope" in ways:
            warning = _warning("UNREACHABLE", "scope", f"zones/{zone}")
            shown["items"][f"zones/{zone}"] = {"warning": warning}
        else:
            del shown["items"][f"zones/{zone}"]


def _empty(zone: str) -> dict[str, Any]:
    return {"warning": _warning("NO_RESULTS_ON_PAGE", "scope", f"zones/{zone}")}


def _warning(code: str, key: str, value: str) -> dict[str, Any]:
    message = f"{code.replace('_', ' ').capitalize()}: '{value}'."
    return {"code": code, "message": message, "data": [{"key": key, "value": value}]}


def _write_token(last: Machine, query: ListQuery) -> str:
    content = json.dumps([last.zone, last.name, query.filter])
    return base64.urlsafe_b64encode(content.encode()).decode()


def _read_token(query: ListQuery) -> tuple[str, str]:
    if not query.page_token:
        return "", ""
    try:
        zone, name, asked = json.loads(base64.urlsafe_b64decode(query.page_token))
    except ValueError as err:
        raise invalid("pageToken", "it is none of ours") from err
    if asked != query.filter:
        raise invalid("pageToken", "it belongs to another filter")
    return zone, name


def predicate_of(expression: str) -> Predicate:
    """Return what a filter asks for: comparisons in brackets, or joined by AND. RefusedError."""
    if not expression.strip():
        return lambda _: True
    terms = [_term(one) for one in _split(expression)]
    return lambda machine: all(term(machine) for term in terms)


def _split(expression: str) -> list[str]:
    if "(" not in expression:
        return re.split(r"\s+AND\s+", expression)
    whole = re.fullmatch(r"\s*\([^()]*\)(\s*(AND)?\s*\([^()]*\))*\s*", expression)
    if whole is None:
        raise invalid("filter", expression)
    return re.findall(r"\(([^()]*)\)", expression)


def _term(text: str) -> Predicate:
    match = _TERM.fullmatch(text)
    if match is None:
        raise invalid("filter", text)
    field, operator, literal = match.groups()
    wanted = literal.strip('"')
    if operator == ":":
        if literal != "*":
            raise RefusedError(400, "invalid", "this fake knows ':' with '*' only")
        return lambda machine: _value(machine, field) is not None
    if operator == "!=":
        return lambda machine: _value(machine, field) != wanted
    return lambda machine: _value(machine, field) == wanted


def _value(machine: Machine, field: str) -> str | None:
    if field.startswith("labels."):
        return machine.labels.get(field.removeprefix("labels."))
    return {"name": machine.name, "status": machine.status, "zone": machine.zone}[field]

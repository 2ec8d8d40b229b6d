"""The dashboard as Grafana will read it, and its metrics as the catalogue has them."""

import json
import re
from typing import Any

from hack.dashboard import ROWS, render

from proxy_operator.adapters.metrics.catalog import CATALOG, Kind


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(render())["panels"]
    return found


def queries() -> list[tuple[str, str]]:
    """Every query with its legend."""
    return [query for row in ROWS for panel in row.panels for query in panel.queries]


def labels_by_series() -> dict[str, set[str]]:
    found = {}
    for metric in CATALOG:
        if metric.kind is Kind.HISTOGRAM:
            found[f"{metric.name}_bucket"] = {*metric.labels, "le"}
        else:
            found[metric.name] = {*metric.labels}
    return found


def test_every_query_asks_for_series_and_labels_that_exist() -> None:
    known = labels_by_series()
    for expr, legend in queries():
        used = set(re.findall(r"{{(\w+)}}", legend))
        for group in re.findall(r"by \(([^)]*)\)", expr):
            used.update(word.strip() for word in group.split(","))
        selectors = re.findall(r"(\w+)\{([^}]*)\}", expr)
        assert selectors
        for series, matchers in selectors:
            matched = set(re.findall(r"(\w+)(?:=|!=|=~|!~)\"", matchers))
            assert "job" in matched, expr
            assert (used | matched) - {"job"} <= known[series], expr


def test_data_source_and_job_are_chosen_above_the_panels() -> None:
    document = json.loads(render())
    assert [one["name"] for one in document["templating"]["list"]] == ["datasource", "job"]
    uids = set(re.findall(r'"uid": "([^"]*)"', render()))
    assert uids == {"proxy-operator", "${datasource}"}


def test_panels_fill_their_lines_and_do_not_overlap() -> None:
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels())
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    height = max(y for _, y in cells) + 1
    assert len(cells) == 24 * height
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids))

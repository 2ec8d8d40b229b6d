"""The catalogue is complete, well named, and the table shows all of it."""

import re

import pytest

from proxy_operator.adapters.metrics import catalog
from proxy_operator.adapters.metrics.catalog import CATALOG, Kind, Metric, metrics_table


@pytest.mark.parametrize("metric", CATALOG, ids=lambda m: m.name)
def test_names_follow_the_conventions_of_prometheus(metric: Metric):
    assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name)
    assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
    assert bool(metric.buckets) == (metric.kind is Kind.HISTOGRAM)
    assert list(metric.buckets) == sorted(set(metric.buckets))
    if metric.kind is Kind.HISTOGRAM:
        assert metric.name.endswith("_seconds")
    assert metric.help.endswith(".")


def test_every_metric_of_the_module_is_in_the_catalogue_once():
    defined = [v for v in vars(catalog).values() if isinstance(v, Metric)]
    assert sorted(m.name for m in defined) == sorted(m.name for m in CATALOG)
    assert len({m.name for m in CATALOG}) == len(CATALOG)


def test_the_table_has_a_row_for_each():
    lines = metrics_table().splitlines()
    assert len(lines) == len(CATALOG) + 2
    assert all(line.count("|") == 5 for line in lines)
    assert "| `proxy_operator_proxies` | gauge | `phase` |" in metrics_table()

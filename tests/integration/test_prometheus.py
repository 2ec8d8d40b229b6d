"""A real Prometheus on a real operator: rules are evaluated, every panel shows something.

Needs the package prometheus.
"""

import contextlib
import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hack.dashboard import ROWS

from tests.e2e.home import Home, a_local, an_external
from tests.e2e.origin import Origin
from tests.e2e.processes import until
from tests.integration.test_alerts import RULES
from tests.integration.test_squid import a_free_port

PROGRAM = shutil.which("prometheus")
if PROGRAM is None:
    pytest.fail("install the package prometheus: these tests run one", pytrace=False)

SELECTOR = re.compile(r"(\w+)\{([^}]*)\}")
QUERIES = [query.expr for row in ROWS for panel in row.panels for query in panel.queries]


class Prometheus:
    """A server on loopback that looks at one operator every half second."""

    def __init__(self, root: Path, metrics_port: int) -> None:
        self.url = f"http://127.0.0.1:{a_free_port()}"
        scrape = {
            "job_name": "proxy-operator",
            "static_configs": [{"targets": [f"127.0.0.1:{metrics_port}"]}],
        }
        config = {
            "global": {
                "scrape_interval": "500ms",
                "scrape_timeout": "500ms",
                "evaluation_interval": "1s",
            },
            "rule_files": [str(RULES)],
            "scrape_configs": [scrape],
        }
        (root / "prometheus.yml").write_text(yaml.safe_dump(config))
        self.log = root / "prometheus.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    str(PROGRAM),
                    f"--config.file={root}/prometheus.yml",
                    f"--storage.tsdb.path={root}/series",
                    f"--web.listen-address={self.url.removeprefix('http://')}",
                ],
                stdout=log,
                stderr=log,
            )

    def get(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=10) as answer:
            return json.load(answer)["data"]

    def series(self, expr: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("query", query=expr)["result"]
        return found

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        # Refused before it listens, 503 while it loads.
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/-/ready"):
            return True
        return False

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """One that has seen an operator at work: proxies made, probed well and badly, leased."""
    root = tmp_path_factory.mktemp("monitored")
    home, origin = Home(root), Origin()
    try:
        operator = home.operator("--gc-interval", "1s")
        # Three of one target: fewer have nothing to be told from.
        bad = [an_external(name, a_free_port(), origin.http) for name in ("bad", "worse", "worst")]
        home.apply(a_local("good"), *bad)
        home.wait_ready("good")
        assert operator.lease()
        seen = Prometheus(root, operator.ports["metrics"])
        try:
            until(seen.is_ready, "prometheus is ready")
            for series in (
                'proxy_operator_sweeps_total{result="success"} > 0',
                'proxy_operator_healthcheck_failures_total{proxy="default/bad"} > 0',
            ):
                until(
                    lambda: seen.series(f"count_over_time(({series})[1m:500ms]) > 2"),  # noqa: B023 - asked at once
                    series,
                )
            yield seen
        finally:
            seen.close()
    finally:
        home.close()
        origin.close()


def test_every_rule_is_evaluated(prometheus: Prometheus) -> None:
    def evaluated() -> list[dict[str, Any]]:
        groups = prometheus.get("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return [] if any(rule["health"] == "unknown" for rule in rules) else rules

    rules = until(evaluated, "all rules were evaluated")
    assert {rule["health"] for rule in rules} == {"ok"}, rules
    assert len(rules) == len(re.findall("- alert:", RULES.read_text()))


def selectors() -> list[tuple[str, str]]:
    """What the rules select."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    text = "\n".join(rule["expr"] for group in groups for rule in group["rules"])
    return SELECTOR.findall(text)


@pytest.mark.parametrize(("metric", "matchers"), sorted(set(selectors())))
def test_what_a_rule_selects_is_there(prometheus: Prometheus, metric: str, matchers: str) -> None:
    assert 'job="proxy-operator"' in matchers
    assert prometheus.series(f"{metric}{{{matchers}}}")


@pytest.mark.parametrize("query", QUERIES)
def test_every_panel_of_the_dashboard_shows_something(prometheus: Prometheus, query: str) -> None:
    expr = query.replace("$job", "proxy-operator").replace("$__rate_interval", "1m")
    assert "$" not in expr
    assert prometheus.series(expr)

"""The alert rules, in promtool: when they fire, what they say, and when they are quiet.

Needs the package prometheus.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.alert_cases import EMPTY, FIRING, SOUND, Case

PROMTOOL = shutil.which("promtool")
if PROMTOOL is None:
    pytest.fail("install the package prometheus: these tests run its promtool", pytrace=False)

RULES = Path(__file__).parents[2] / "deploy" / "monitoring" / "alerts.yaml"
JOB = "proxy-operator"


def rules() -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def promtool(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([str(PROMTOOL), *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def with_job(series: str) -> str:
    name, _, labels = series.rstrip("}").partition("{")
    return f'{name}{{job="{JOB}"{"," if labels else ""}{labels}}}'


def a_test(series: Mapping[str, str], expected: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {
        "interval": "1m",
        "input_series": [
            {"series": with_job(name), "values": values} for name, values in series.items()
        ],
        "alert_rule_test": list(expected),
    }


def run(tmp_path: Path, *tests: dict[str, Any]) -> None:
    file = tmp_path / "alerts_test.yaml"
    plan = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": list(tests)}
    # JSON is YAML.
    file.write_text(json.dumps(plan))
    code, said = promtool("test", "rules", str(file))
    assert code == 0, said


def quiet(alert: str, minute: int) -> dict[str, Any]:
    return {"alertname": alert, "eval_time": f"{minute}m", "exp_alerts": []}


def firing(alert: str, minute: int, summary: str, **labels: str) -> dict[str, Any]:
    rule = rules()[alert]
    alerts = {
        "exp_labels": {**labels, **rule["labels"]},
        "exp_annotations": {**rule["annotations"], "summary": summary},
    }
    return {"alertname": alert, "eval_time": f"{minute}m", "exp_alerts": [alerts]}


def test_prometheus_takes_the_rules() -> None:
    code, said = promtool("check", "rules", "--lint=all", "--lint-fatal", str(RULES))
    assert code == 0, said


@pytest.mark.parametrize("case", FIRING, ids=lambda case: case.alert)
def test_an_alert_is_quiet_and_then_fires(tmp_path: Path, case: Case) -> None:
    told = firing(case.alert, case.fires_at, case.summary, job=JOB, **case.labels)
    run(tmp_path, a_test(case.series, [quiet(case.alert, case.quiet_at), told]))


def test_an_operator_that_is_gone_is_down(tmp_path: Path) -> None:
    # `absent` has no labels to give.
    summary = "No proxy-operator can be scraped."
    told = firing("ProxyOperatorDown", 12, summary)
    for values in ("1+0x9 0+0x20", "1+0x9 _x20"):
        # A series that is gone counts for another five minutes.
        late = {**told, "eval_time": "20m"}
        run(tmp_path, a_test({"up": values}, [quiet("ProxyOperatorDown", 11), late]))
    run(tmp_path, a_test({"up": "1+0x9 0+0x20"}, [told]))


@pytest.mark.parametrize("series", [SOUND, EMPTY], ids=["everyday faults", "no proxies"])
def test_in_sound_times_nothing_fires(tmp_path: Path, series: Mapping[str, str]) -> None:
    moments = range(0, 120, 5)
    run(tmp_path, a_test(series, [quiet(name, at) for name in rules() for at in moments]))


def test_every_alert_is_seen_firing() -> None:
    assert {case.alert for case in FIRING} | {"ProxyOperatorDown"} == set(rules())


def test_every_alert_says_what_to_do_and_where_that_is_explained() -> None:
    page = (RULES.parents[2] / "docs" / "monitoring.md").read_text()
    sections = {title.lower() for title in re.findall(r"^### (\w+)$", page, re.MULTILINE)}
    assert sections == {name.lower() for name in rules()}
    for name, rule in rules().items():
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"].keys() == {"summary", "description", "runbook"}
        assert rule["annotations"]["runbook"] == f"docs/monitoring.md#{name.lower()}"

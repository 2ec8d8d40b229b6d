"""docs/operations.md names what there is, and all of it."""

import re
from pathlib import Path

from hack.deploy.names import CRAWLER_LABEL, TOKEN_KEY, TOKEN_SECRET, WATCHED

from proxy_operator.adapters.metrics.catalog import metrics_table
from proxy_operator.app.options import OPTIONS
from proxy_operator.domain.condition import HealthyReason, ProvisionedReason

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/operations.md").read_text()


def rows_of(title: str) -> list[str]:
    """First cells of the table with that title."""
    _, _, below = PAGE.partition(f"| {title} |")
    table, _, _ = below.partition("\n\n")
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def test_every_reason_has_its_row():
    assert sorted(rows_of("`Provisioned`")) == sorted(ProvisionedReason)
    assert sorted(rows_of("`Healthy`")) == sorted(HealthyReason)


def test_alerts_name_metrics_that_there_are():
    named = set(re.findall(r"`((?:proxy_operator|workqueue|leader_election)_\w+)", PAGE))
    assert named
    assert {name for name in named if f"`{name}`" not in metrics_table()} == set()


def test_flags_on_the_page_are_options():
    flags = {option.flag for option in OPTIONS}
    ours = set(re.findall(r"`(--[a-z-]+)`", PAGE))
    assert ours
    assert ours <= flags


def test_commands_name_what_the_files_expect():
    assert f"secret generic {TOKEN_SECRET} " in PAGE
    assert f"--from-file={TOKEN_KEY}=" in PAGE
    assert f"{CRAWLER_LABEL}=true" in PAGE


def test_the_edits_for_one_namespace_leave_nothing_of_the_example():
    text = (ROOT / "deploy/namespaced/install.yaml").read_text()
    edits = re.findall(r"-e 's/([^/]+)/([^/]+)/'", PAGE)
    assert len(edits) == 3
    for old, new in edits:
        text, count = re.subn(old, new, text, flags=re.MULTILINE)
        assert count
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    assert [line for line in lines if re.search(rf"[=:] ?{WATCHED}$", line)] == []

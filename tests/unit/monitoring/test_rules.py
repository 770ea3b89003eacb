"""The alert rules: valid, with words and a section of the runbook for each, and only with metrics and labels that nodes export."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from include.settings import CHECKOUT
from tests.unit.monitoring.exported import Key
from tests.unit.monitoring.promtool import MONITORING, RULES, needs_promtool, promtool

ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
}
RUNBOOK = CHECKOUT / "docs" / "runbook.md"
SECTIONS = dict(
    re.findall(
        r"^## (Foldlake\w+)\n(.*?)(?=^## |\Z)", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
)
# Of Prometheus: a sample for each scrape.
UP = "up"
ADDED_LABELS = {"instance", "job"}
SELECTOR = re.compile(r"\b(up|foldlake_\w+)\b(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~?)"([^"]*)"')
GROUPING = re.compile(r"\b(?:by|on|without|ignoring|group_left) ?\(([^)]*)\)")


def unknown_names(expression: str, exported: Iterable[Key]) -> list[str]:
    """Return the metrics, labels and values of labels in an expression of PromQL that no node exports."""
    wrong = []
    used: set[str] = set()
    for name, matchers in SELECTOR.findall(expression):
        found = [dict(labels) for series, labels in exported if series == name]
        if not found:
            wrong.append(name)
        used |= {label for labels in found for label in labels}
        for label, operator, value in MATCHER.findall(matchers):
            values = {labels[label] for labels in found if label in labels}
            wanted = value.split("|") if operator == "=~" else [value]
            wrong += [f"{name}{{{label}={one}}}" for one in wanted if one not in values]
    grouped = {label.strip() for labels in GROUPING.findall(expression) for label in labels.split(",")}
    return wrong + sorted(grouped - used)


@pytest.mark.parametrize("name", ALERTS)
def test_a_rule_uses_only_what_nodes_export(name: str, exported: set[Key]) -> None:
    assert unknown_names(ALERTS[name]["expr"], exported) == []


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("max by (topic) (foldlake_node_ready)", ["topic"]),
        (
            'foldlake_lookups_total{outcome=~"ok|no-such-outcome"}',
            ["foldlake_lookups_total{outcome=no-such-outcome}"],
        ),
        ('foldlake_stream_events{stage="dead"} > 0', ["foldlake_stream_events{stage=dead}"]),
        ("foldlake_no_such_metric", ["foldlake_no_such_metric"]),
    ],
)
def test_a_wrong_name_is_found(expression: str, wrong: list[str], exported: set[Key]) -> None:
    assert unknown_names(expression, exported) == wrong


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_has_a_severity_and_words(name: str) -> None:
    rule = ALERTS[name]

    assert rule["labels"].keys() == {"severity"}
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{name.lower()}"
    labels = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
    kept = {label.strip() for found in GROUPING.findall(rule["expr"]) for label in found.split(",")}
    assert labels <= kept | ADDED_LABELS


def test_each_alert_has_a_section_of_the_runbook_and_each_section_an_alert() -> None:
    assert list(SECTIONS) == list(ALERTS)


@pytest.mark.parametrize("name", ALERTS)
def test_a_section_has_meaning_checks_and_actions(name: str) -> None:
    parts = re.findall(r"^\*\*(.+?)\*\* (?=\S)", SECTIONS[name], re.MULTILINE)

    assert parts == ["Meaning.", "Check.", "Do."]
    assert f"({ALERTS[name]['labels']['severity']})" in SECTIONS[name]


@needs_promtool
def test_prometheus_accepts_rules_and_configuration() -> None:
    promtool("check", "rules", RULES)
    # Without the file of the API key, which is in a container.
    promtool("check", "config", "--syntax-only", MONITORING / "prometheus.yml")


FILES = sorted((Path(__file__).parent / "alerts").glob("*.yaml"))


@needs_promtool
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_alerts_fire_at_their_thresholds(path: Path) -> None:
    promtool("test", "rules", path)


def test_each_alert_is_tested_at_its_threshold() -> None:
    tested = {
        test["name"]: [case["exp_samples"] for case in test["promql_expr_test"]]
        for path in FILES
        for test in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]
    }

    assert tested.keys() == ALERTS.keys()
    for name, cases in tested.items():
        fires = [{"labels": f'{{alertname="{name}"}}', "value": 1}]
        assert fires in cases, name
        assert [] in cases, name

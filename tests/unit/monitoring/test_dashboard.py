"""The dashboard: every panel has words, a unit and its place, and asks only for what nodes export."""

import json
import re
from typing import Any

import pytest
import yaml

from tests.unit.monitoring.exported import Key
from tests.unit.monitoring.promtool import MONITORING
from tests.unit.monitoring.test_rules import unknown_names

FOLDER = MONITORING / "grafana"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "foldlake.json").read_text(encoding="utf-8"))
ROWS = [panel for panel in DASHBOARD["panels"] if panel["type"] == "row"]
PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"] if panel["type"] != "row"}
COLUMNS = 24
# Written by Prometheus itself.
ALERT_SERIES = "ALERTS{"


def test_panels_have_titles_and_numbers_of_their_own() -> None:
    assert len(PANELS) + len(ROWS) == len(DASHBOARD["panels"])
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert len(ROWS) > 1


@pytest.mark.parametrize("title", PANELS)
def test_a_panel_has_words_a_unit_and_the_chosen_data_source(title: str) -> None:
    panel = PANELS[title]

    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    source = {"type": "prometheus", "uid": "${datasource}"}
    assert [panel["datasource"], *(target["datasource"] for target in panel["targets"])] == [source] * (
        len(panel["targets"]) + 1
    )
    assert [target["refId"] for target in panel["targets"]] == list("ABCDE"[: len(panel["targets"])])


@pytest.mark.parametrize("title", PANELS)
def test_a_panel_queries_only_what_nodes_export(title: str, exported: set[Key]) -> None:
    for target in PANELS[title]["targets"]:
        assert unknown_names(target["expr"], exported) == []
        assert "foldlake_" in target["expr"] or ALERT_SERIES in target["expr"]
        kept = {
            name.strip()
            for found in re.findall(r"by \(([^)]*)\)", target["expr"])
            for name in found.split(",")
        }
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= kept | {"instance"}


def test_no_panel_covers_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= COLUMNS
        taken |= cells


def test_the_data_source_and_the_dashboard_are_provisioned() -> None:
    (variable,) = DASHBOARD["templating"]["list"]
    (source,) = yaml.safe_load((FOLDER / "datasource.yaml").read_text(encoding="utf-8"))["datasources"]
    (provider,) = yaml.safe_load((FOLDER / "dashboards.yaml").read_text(encoding="utf-8"))["providers"]

    assert (variable["name"], variable["query"]) == ("datasource", source["type"])
    assert variable["current"] == {"text": source["name"], "value": source["uid"]}
    assert source["url"] == "http://prometheus:9090"
    assert provider["options"]["path"] == "/etc/grafana/dashboards"

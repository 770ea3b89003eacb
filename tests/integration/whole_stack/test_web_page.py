"""What Airflow's web page has of Foldlake: the status page in its navigation, details of asset events, reports in notes."""

from typing import Any

import httpx

from include.airflow.client import AirflowApi
from include.airflow.names import COMPACTION_DAG, QUALITY_DAG, lake_asset, quality_asset
from include.settings import Settings
from include.versions.registry import VersionRegistry
from tests.support.waiting import wait_until

MODEL = "balance"
TIMEOUT_S = 600.0
POLL_S = 1.0


def events(api: AirflowApi, asset: str) -> list[dict[str, Any]]:
    """Return the events of an asset, newest first."""
    assets = api._call("GET", "assets", params={"name_pattern": asset})["assets"]
    ids = [found["id"] for found in assets if found["name"] == asset]
    found: list[dict[str, Any]] = api._call(
        "GET", "assets/events", params={"asset_id": ids[0], "order_by": "-timestamp"}
    )["asset_events"]
    return found


def test_the_navigation_has_the_status_page_of_a_node_which_lets_airflow_show_it(
    full_stack: Settings, api: AirflowApi
) -> None:
    plugins = {plugin["name"]: plugin for plugin in api._call("GET", "plugins")["plugins"]}
    (view,) = plugins["foldlake"]["external_views"]
    assert (view["name"], view["destination"], view["nav_top_level"]) == ("Foldlake", "nav", True)
    assert view["href"] == f"http://127.0.0.1:{full_stack.query_ports[0]}/"

    page = httpx.get(view["href"], trust_env=False)

    assert page.status_code == 200
    assert (
        full_stack.airflow.base_url in page.headers["Content-Security-Policy"].partition("frame-ancestors")[2]
    )
    assert api._call("GET", "importErrors")["import_errors"] == []


def test_the_events_of_tables_and_checks_say_what_they_stand_for_and_the_note_links_the_report(
    full_stack: Settings, api: AirflowApi
) -> None:
    if not any(event["extra"].get("rows") for event in events(api, lake_asset(MODEL))):
        api.trigger(COMPACTION_DAG, {"read_model": MODEL, "optimize": False})
        wait_until(lambda: events(api, lake_asset(MODEL)), "the table is announced", TIMEOUT_S, POLL_S)
    wait_until(lambda: events(api, quality_asset(MODEL)), "a check has passed", TIMEOUT_S, POLL_S)

    table, check = events(api, lake_asset(MODEL))[0], events(api, quality_asset(MODEL))[0]

    live = VersionRegistry(full_stack.kafka_connection).read()[MODEL].live
    assert live is not None
    assert table["extra"]["version"] == live.number
    assert table["extra"]["rows"] >= 0
    assert set(table["extra"]["offsets"]) <= {str(p) for p in range(full_stack.topics.partitions)}
    assert check["extra"]["keys"] >= 0
    assert check["extra"]["mode"] in {"full", "incremental", "sample"}
    note = api.note(QUALITY_DAG, check["source_run_id"])
    assert note.startswith(
        f"{MODEL} passed: [Report](http://127.0.0.1:{full_stack.query_ports[0]}/reports/quality/"
    )
    assert httpx.get(note.partition("(")[2].partition(")")[0], trust_env=False).status_code == 200


def test_the_form_s_dropdown_names_the_live_version(api: AirflowApi) -> None:
    def shown() -> dict[str, str]:
        schema = api._call("GET", "dags/rebuild/details")["params"]["read_model"]["schema"]
        found: dict[str, str] = schema.get("values_display") or {}
        return found

    wait_until(lambda: "live" in shown().get(MODEL, ""), "the label has the live version", TIMEOUT_S, POLL_S)

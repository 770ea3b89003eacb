"""What an asset event says about its cause, in its `extra`: which version, up to which offsets, how many rows."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, Context

from include.airflow.names import lake_asset
from include.position import Offsets
from include.settings import Settings

if TYPE_CHECKING:
    from include.lake.event_table_check import EventTableCheck
    from include.lake.log_comparison import LogComparison


def table_details(settings: Settings, name: str) -> dict[str, Any]:
    """Return what a table of the lake holds now; empty before its first commit.

    version: of the read model; absent for an event table. offsets: partition of the source -> offset below which every event is in it.
    """
    from include.lake.status import table_summary  # noqa: PLC0415 - not when DAGs are parsed

    summary = table_summary(settings.lake_root, name)
    if summary is None:
        return {}
    version = {} if summary.version is None else {"version": summary.version}
    return {
        **version,
        "offsets": _json(summary.complete_up_to),
        "rows": summary.rows,
        "bytes": summary.bytes,
        "delta_version": summary.delta_version,
    }


def describe_table(name: str) -> Callable[[Context, object], None]:
    """Return a `post_execute` that adds these details to the event of the table's asset."""

    def describe(context: Context, _result: object = None) -> None:
        context["outlet_events"][Asset(lake_asset(name))].extra = table_details(Settings(), name)

    return describe


def describe_tables(folder: str, names: Collection[str]) -> Callable[[Context, object], None]:
    """Return a `post_execute` that adds the details of each of these tables, by name, to the event of their folder's asset."""

    def describe(context: Context, _result: object = None) -> None:
        settings = Settings()
        details = {name: table_details(settings, name) for name in names}
        context["outlet_events"][Asset(lake_asset(folder))].extra = {
            name: found for name, found in details.items() if found
        }

    return describe


def check_details(result: dict[str, Any]) -> dict[str, Any]:
    """Return what the JSON of a passed check says: version, mode, keys, events, and up to which offsets each store is verified."""
    verified = result.get("verified") or {}
    return {
        "version": result.get("version"),
        "mode": result["request"]["mode"],
        "stores": result["request"]["stores"],
        "keys": result.get("keys"),
        "events": result.get("events"),
        "offsets": {store: mark["verified_up_to"] for store, mark in verified.items()},
        "report": result.get("report_url"),
    }


def event_table_details(
    check: "EventTableCheck", comparison: "LogComparison | None" = None
) -> dict[str, int]:
    """Return what a check of an event table found: its rows, and, if it was compared with the log, how many events of it."""
    compared = {} if comparison is None else {"compared_with_log": comparison.compared}
    return {"rows": check.rows, **compared}


def _json(offsets: Offsets) -> dict[str, int]:
    return {str(partition): offset for partition, offset in offsets.items()}

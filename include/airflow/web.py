"""What Airflow's web page shows of Foldlake: labels of forms, notes of quality runs with links to reports, details of asset events."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import httpx
from airflow.sdk import Asset, Context

from include.airflow.client import MAX_NOTE_CHARACTERS, AirflowUnavailableError, airflow_api
from include.airflow.names import lake_asset
from include.errors import SettingsError
from include.nodes.local_nodes import NodeAddress, local_nodes
from include.position import Offsets
from include.quality.report import Outcome, Verdict, report_url
from include.settings import Settings

if TYPE_CHECKING:
    from include.lake.event_table_check import EventTableCheck
    from include.replay.table_proof import LogComparison

# DAG files are read every 30 s, and at the start of each task: a node on the same machine answers within milliseconds.
TIMEOUT_S = 0.5
PATH = "/api/read-models"
LIVE = "live"
LOG = logging.getLogger(__name__)
WORDS = {Outcome.PASSED: "passed", Outcome.FAILED: "**FAILED**", Outcome.UNCHECKABLE: "cannot be checked"}


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


def event_table_details(check: "EventTableCheck", comparison: "LogComparison") -> dict[str, int]:
    """Return what a check of an event table found: its rows, and how many of them were compared with the log now, and before."""
    return {
        "rows": check.rows,
        "compared_with_log": comparison.compared,
        "proved_before": comparison.proved,
    }


def _json(offsets: Offsets) -> dict[str, int]:
    return {str(partition): offset for partition, offset in offsets.items()}


def read_model_labels(settings: Settings, names: Iterable[str]) -> dict[str, str]:
    """Return a label for each of these read models that has versions, as a query node knows them; empty if none answers.

    A label follows a promotion when Airflow reads the DAG file again, within half a minute. It decides nothing.
    """
    try:
        known = {str(model["name"]): model for model in _read_models(settings)}
        return {name: _label(known[name]) for name in names if name in known}
    except (TypeError, KeyError, AttributeError, SettingsError):
        return {}  # another server answers at the node's address


def _label(model: dict[str, Any]) -> str:
    others = [
        f"v{version['version']} {version['stage']}"
        for version in model["versions"]
        if version["stage"] != LIVE
    ]
    live = "no live version" if model["live"] is None else f"v{model['live']} live"
    return f"{model['name']} ({', '.join([live, *others])})"


def _read_models(settings: Settings) -> list[dict[str, Any]]:
    for node in _nodes(settings):
        try:
            with node.client(TIMEOUT_S) as client:
                found: list[dict[str, Any]] = client.get(PATH).raise_for_status().json()
        except (httpx.HTTPError, OSError, ValueError):
            continue
        return found
    return []


def _nodes(settings: Settings) -> Iterator[NodeAddress]:
    """Yield the nodes on this machine, then those elsewhere: in other containers or on other machines, which a setting names."""
    if not settings.has_peer_listener:
        # With authentication, the server of the reports demands a key.
        yield NodeAddress(settings.reports_base_url.rstrip("/"))
    yield from local_nodes(settings)
    if settings.node.peer_hosts:
        yield from _members(settings)


def _members(settings: Settings) -> list[NodeAddress]:
    # Not when DAGs are parsed on the machine of the nodes.
    from confluent_kafka import KafkaException  # noqa: PLC0415

    from include.kafka.topics import admin_client  # noqa: PLC0415
    from include.nodes.node_url import PeerRule  # noqa: PLC0415
    from include.nodes.routing_table import routing_table  # noqa: PLC0415

    rule = PeerRule.of_client(settings)
    try:
        table = routing_table(admin_client(settings.kafka_connection, log_level=0), TIMEOUT_S, rule)
    except KafkaException:
        return []
    return [NodeAddress(url, rule.tls) for url in (table.nodes if table else ())]


def note_verdict(settings: Settings, run: Any, read_model: str, check: str, verdict: Verdict) -> None:  # noqa: ANN401 - Airflow's
    """Add the verdict of a check to the note of its run, in place of an earlier one on the same read model.

    The checks of a run follow one another in their pool, so that none overwrites what another has just noted.
    """
    line = verdict_line(read_model, verdict, report_url(settings.reports_base_url, check))
    try:
        api = airflow_api(settings.home, settings.airflow)
        note = with_line(api.note(run.dag_id, run.run_id), read_model, line)
        api.set_note(run.dag_id, run.run_id, note)
    except (AirflowUnavailableError, OSError, ValueError, KeyError) as error:
        # The run does not depend on its note.
        LOG.warning("cannot set the run's note: %s", error)


def verdict_line(read_model: str, verdict: Verdict, url: str) -> str:
    """Return a verdict as a line of Markdown."""
    link = "" if verdict.outcome is Outcome.UNCHECKABLE else f": [Report]({url})"
    return f"{_prefix(read_model)}{WORDS[verdict.outcome]}{link}"


def with_line(note: str, read_model: str, line: str) -> str:
    """Return a note with the line on a read model; lines that do not fit are left out, oldest first."""
    lines = [one for one in note.split("\n\n") if one and not one.startswith(_prefix(read_model))] + [line]
    while len("\n\n".join(lines)) > MAX_NOTE_CHARACTERS and len(lines) > 1:
        lines.pop(0)
    return "\n\n".join(lines)


def _prefix(read_model: str) -> str:
    return f"{read_model} "

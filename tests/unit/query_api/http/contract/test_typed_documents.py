"""The schemas of status and explanation are exact: a document has every field that its schema lists, and no other."""

import json
from dataclasses import replace
from typing import Any, TypedDict

import pytest
from jsonschema import Draft202012Validator, ValidationError, validate

from include.kafka.record_ends import OpenTransaction
from include.nodes.field_names import FieldNames, renamed
from include.nodes.partition_report import PartitionReport
from include.position import Offsets
from include.rebuild.stage_progress import StageProgress
from include.settings import Placement
from include.status.flow_status import BuildingVersion, FlowKind, FlowStatus, SourceStatus
from include.stream.folded_offsets import EventTimeAhead
from include.stream.query_reports import BatchProgress, QueryReport
from include.versions.explanation import ExplainedEvent, ExplainedVersion, Explanation
from query_api.history.samples import History, HistorySample
from query_api.http.contract import answer_schemas
from query_api.http.contract.typed_schema import typed_schema
from query_api.status.lake import TableEntry
from query_api.status.nodes import NodeEntry, PartitionEntry
from query_api.status.quality import CheckEntry, QualityEntry, VerifiedEntry
from query_api.status.sections import (
    FailedLaunches,
    HistoryEntry,
    Section,
    SectionSource,
    StreamEntry,
    section_types,
)
from query_api.status.services import ServiceEntry
from query_api.status.versions import RebuildEntry, VersionEntry

TIME = "2026-01-02T03:04:05.000+00:00"
REPORT = QueryReport(
    "balance/v1", "real time", 0, "", 1, "local", 0.5, BatchProgress(end_offsets={"0": 7}, finished_at=TIME)
)
FLOW = FlowStatus("balance/v1", FlowKind.FOLD, "balance", "balance", 1, "live", report=REPORT)
AHEAD = replace(
    FLOW, event_time_ahead=EventTimeAhead("partition=0, offset=1", 700.0), report=None, version=None
)
CHECK = CheckEntry(None, None, "full", ["lake"], "no verdict", TIME, 1.5, "duckdb", "", None)
TABLE = TableEntry("balance", is_event_table=False, path="lake/balance")
HISTORY = History()
HISTORY.add("balance", HistorySample(1_800_000_000, None, 1.5, None, 12, None))
SECTIONS: dict[str, tuple[Any, ...]] = {
    "services": ([ServiceEntry("Kafka", "127.0.0.1:1", is_up=False, detail="no answer", effect="none")],),
    "nodes": ([NodeEntry("node-1", "http://a", "", is_self=True, state="ready", reasons=["why"])],),
    "versions": ([VersionEntry("balance", 1, "live", ""), VersionEntry("b", 2, "live", "", "", 1, TIME, TIME, TIME, (3, 4))],),
    "rebuilds": ([RebuildEntry("balance", 2, "candidate", "why", TIME, "run", None, [StageProgress("balance", 2, "verify", 1, 2)], 1, 4)],),
    "stream": (
        StreamEntry((FLOW, AHEAD), (SourceStatus("balance", 3, 0.0, OpenTransaction("balance", 3, 5.0)),), (BuildingVersion("b", 2, 1, TIME, "why"),), "latency", FailedLaunches(2, TIME, "error")),
        StreamEntry(),
    ),
    "partitions": ([PartitionEntry("balance", 1, "live", 0, None, [], Placement.REDIS, is_ready=True, lag_records=None, events_behind=2)],),
    "lake": ([TABLE, replace(TABLE, exists=True, version=1, rows=2, bytes=3, delta_version=4, age_s=5.5, events_behind=6)],),
    "quality": ([QualityEntry("balance", CHECK, [VerifiedEntry("lake", 1, TIME, 1.5, 2.5)]), QualityEntry("b", None, [])],),
    "history": (HistoryEntry(10, HISTORY.as_json()),),
}  # fmt: skip


def exact(schema: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return a schema that allows no other fields than those that it lists."""
    if isinstance(schema, dict):
        found = {name: exact(one) for name, one in schema.items()}
        return found | ({"additionalProperties": False} if "properties" in schema else {})
    return [exact(one) for one in schema] if isinstance(schema, list) else schema


def answered(document: object) -> Any:  # noqa: ANN401 - as above
    return renamed(json.loads(json.dumps(document, default=str)), FieldNames.CAMEL)


class Read(TypedDict):
    """A section of the status."""

    as_of: str | None
    age_s: float | None
    error: str | None
    data: Any


def test_every_section_is_tried() -> None:
    assert list(SECTIONS) == list(section_types())


@pytest.mark.parametrize(("name", "data"), [(name, one) for name, each in SECTIONS.items() for one in each])
def test_a_section_is_as_its_schema_says(name: str, data: object, tmp_path: Any) -> None:  # noqa: ANN401 - pytest's
    section = Section(SectionSource(name, lambda: data, 60.0), tmp_path).current(wait_s=10.0)
    document = {"node": "n", "url": "http://a", "at": TIME, "sections": {name: answered(section)}}

    assert section["error"] is None
    assert section["data"] is not None
    Draft202012Validator.check_schema(answer_schemas.status())
    validate(document, exact(answer_schemas.status()), Draft202012Validator)


def test_a_section_that_cannot_be_read_is_as_its_schema_says() -> None:
    unread: Read = {"as_of": None, "age_s": None, "error": "Kafka does not answer.", "data": None}
    document = {
        "node": "n",
        "url": "u",
        "at": TIME,
        "sections": {name: answered(unread) for name in SECTIONS},
    }

    validate(document, exact(answer_schemas.status()), Draft202012Validator)


EVENT = ExplainedEvent(1, 0, 7, TIME, TIME, "FundsAdded", '{"first_name":"x"}', None)
SHOWN = ExplainedVersion(1, "live", 1, "balance", {"0": 3}, 1, '{"amount":5.00}')
EXPLANATION = Explanation(
    "balance", "a", TIME, SHOWN, (EVENT,), (replace(SHOWN, version=None, state=None),), {"0": 0}, {"0": 9}, 9
)


def test_an_explanation_is_as_its_schema_says() -> None:
    validate(answered(EXPLANATION.document()), exact(typed_schema(Explanation)), Draft202012Validator)


@pytest.mark.parametrize("folded", [Offsets(), Offsets({0: 6})])
def test_the_report_of_a_partition_is_as_its_schema_says(folded: Offsets) -> None:
    report = PartitionReport(
        *("b", 1, "live", 0, None, ("http://a",), "http://a"),
        is_held=True,
        is_ready=True,
        changelog_topic="t",
        folded=folded,
    )

    validate(answered(report.as_json()), exact(typed_schema(PartitionReport)), Draft202012Validator)


def test_a_renamed_field_is_refused() -> None:
    document = answered(EXPLANATION.document())
    document["records"] = document.pop("recordsRead")

    with pytest.raises(ValidationError):
        validate(document, typed_schema(Explanation), Draft202012Validator)
    with pytest.raises(ValidationError, match="records"):
        validate(document | {"recordsRead": 9}, exact(typed_schema(Explanation)), Draft202012Validator)


def test_a_type_that_no_document_has_is_refused() -> None:
    with pytest.raises(TypeError, match="has no JSON Schema"):
        typed_schema(complex)

"""The operations that every node has, whatever its declarations are."""

from collections.abc import Iterable, Iterator

from include.nodes.partition_report import PARTITIONS_PATH
from include.nodes.record_requests import ARROW_TYPE
from query_api.http.answers import PROMETHEUS_TYPE
from query_api.http.contract import answer_schemas
from query_api.http.contract import parameters as given
from query_api.http.contract.headers import OF_LOOKUP, OF_SEVERAL, OF_STREAM
from query_api.http.contract.json_schema import Schema, object_schema
from query_api.http.contract.operations import JSON, UNCHANGED, Answer, Operation
from query_api.http.contract.parameters import Parameter

RECORDS, CHANGES, STATUS, OPERATIONS, CONTRACT = (
    "Records",
    "Changes",
    "Status",
    "Health and metrics",
    "Contract",
)
LOOKUP_PROBLEMS = ("unknown-model", "not-ready")
DOCUMENT_PROBLEMS = ("invalid-field-names",)
LISTING_PROBLEMS = (
    *("invalid-decimals", "invalid-key", "invalid-version", "invalid-bound", "invalid-limit", "invalid-partition", "invalid-after", "invalid-prefix"),
    *("invalid-cursor", "invalid-within", "invalid-format", "invalid-sample", "no-location", "bound-of-another-topic"),
    *("unknown-key", "not-owner", "not-up-to-bound", "too-many-streams", *DOCUMENT_PROBLEMS),
)  # fmt: skip
CHANGE_PROBLEMS = (
    *("invalid-decimals", "key-and-prefix", "invalid-key", "invalid-prefix", "invalid-within", "invalid-position", "invalid-version", "invalid-snapshot"),
    *("no-location", "position-gone", "too-many-streams", "log-unavailable", *DOCUMENT_PROBLEMS),
)  # fmt: skip
ANY_OBJECT: Schema = {"type": "object"}
HTML = "text/html"


def built_in_operations(read_models: Iterable[str]) -> Iterator[Operation]:
    """Yield the operations; `read_models` are the names that a path can have."""
    name = Parameter(
        "name",
        {"type": "string", "enum": sorted(read_models)},
        "Name of a read model.",
        is_required=True,
        location="path",
    )
    yield from _of_records(name)
    yield _changes(name)
    yield from _of_status()
    yield from _of_operations()
    yield from _of_contract()


def _of_records(name: Parameter) -> Iterator[Operation]:
    yield Operation(
        "/api/read-models",
        "listReadModels",
        RECORDS,
        "Lists the read models and their versions",
        (Answer("The read models.", {JSON: {"type": "array", "items": answer_schemas.read_model()}}),),
        problems=DOCUMENT_PROBLEMS,
        parameters=given.OF_DOCUMENT,
    )
    key = Parameter(
        "key",
        given.KEY_SCHEMA,
        "Key of the record. Use the query instead for a key that clients or proxies would rewrite.",
        "1",
        is_required=True,
        location="path",
    )
    yield Operation(
        "/api/read-models/{name}/records/{key}",
        "getRecord",
        RECORDS,
        "Returns a complete state record",
        (Answer("The record.", {JSON: {"$ref": "#/components/schemas/Record"}}, OF_LOOKUP), UNCHANGED),
        problems=(
            *LOOKUP_PROBLEMS,
            *("unknown-key", "not-up-to-bound", "invalid-key", "invalid-version", "invalid-bound"),
            *("bound-of-another-topic", "invalid-decimals", "not-found", *DOCUMENT_PROBLEMS),
        ),
        parameters=(name, key, *given.OF_RECORD, given.IF_NONE_MATCH),
    )
    forms = (
        given.KEY,
        given.MIN_OFFSET,
        *given.OF_MODEL,
        given.PARTITION,
        given.AFTER_KEY,
        given.FORMAT,
        given.SAMPLE,
    )
    yield Operation(
        "/api/read-models/{name}/records",
        "listRecords",
        RECORDS,
        "Returns records: all, those of a partition, or that of a key",
        (
            Answer(
                "A record, a page of the read model, a page of a partition of this node, or that partition as a stream.",
                {
                    JSON: {
                        "anyOf": [
                            {"$ref": f"#/components/schemas/{one}"}
                            for one in ("Record", "ModelPage", "PartitionPage")
                        ]
                    },
                    ARROW_TYPE: {},
                },
                OF_SEVERAL,
            ),
            Answer("With `key` and `If-None-Match`: the client has the answer.", {}, OF_SEVERAL, status=304),
        ),
        problems=(*LOOKUP_PROBLEMS, *LISTING_PROBLEMS),
        parameters=(name, *forms, given.IF_NONE_MATCH),
        description=(
            "Four forms: with `key`, that record, as `getRecord`; with `partition`, the records of this partition in this node's own "
            "store, in pages or, with `format`, as one stream; otherwise all records of the read model, from all nodes, in pages. "
            "A parameter of another form is refused."
        ),
    )


def _changes(name: Parameter) -> Operation:
    return Operation(
        "/api/read-models/{name}/changes",
        "streamChanges",
        CHANGES,
        "Streams what happens to the keys, as Server-Sent Events",
        (
            Answer(
                "Events without an end. The schema is that of each of them.",
                {"text/event-stream": answer_schemas.event()},
                OF_STREAM,
            ),
        ),
        problems=(*LOOKUP_PROBLEMS, *CHANGE_PROBLEMS),
        parameters=(name, *given.OF_CHANGES, given.LAST_EVENT_ID),
    )


def _of_status() -> Iterator[Operation]:
    yield Operation(
        PARTITIONS_PATH,
        "listPartitions",
        STATUS,
        "Lists owner, position and lag of every partition",
        (
            Answer(
                "The partitions.",
                {JSON: {"type": "array", "items": {"$ref": "#/components/schemas/Partition"}}},
            ),
        ),
        problems=DOCUMENT_PROBLEMS,
        parameters=given.OF_DOCUMENT,
    )
    yield Operation(
        "/api/status",
        "getStatus",
        STATUS,
        "Returns the status of the whole",
        (Answer("The sections.", {JSON: {"$ref": "#/components/schemas/Status"}}),),
        problems=("unknown-section", *DOCUMENT_PROBLEMS),
        parameters=given.OF_STATUS,
    )
    pending = object_schema(
        {
            "status": {"enum": ["queued", "running"]},
            "runningForS": {"type": ["number", "null"]},
            "detail": {"type": "string"},
        }
    )
    yield Operation(
        "/explain",
        "explainKey",
        STATUS,
        "Returns the events behind the state of a key",
        (
            Answer(
                "The explanation; a page for browsers.",
                {JSON: {"$ref": "#/components/schemas/Explanation"}, HTML: {"type": "string"}},
            ),
            Answer(
                "The log is being read: repeat the request.",
                {JSON: pending, HTML: {"type": "string"}},
                status=202,
            ),
        ),
        problems=(
            "missing-read-model",
            "missing-key",
            "invalid-key",
            "invalid-version",
            "unknown-model",
            "not-explained",
            *DOCUMENT_PROBLEMS,
        ),
        parameters=given.OF_EXPLANATION,
    )


def _of_operations() -> Iterator[Operation]:
    health = object_schema({"status": {"const": "alive"}, "node": {"type": "string"}})
    yield Operation(
        "/healthz",
        "getHealth",
        OPERATIONS,
        "Whether the HTTP server runs",
        (Answer("It runs.", {JSON: health}),),
        scope=None,
    )
    reasons = {"type": "array", "items": {"type": "string"}}
    ready = object_schema(
        {"status": {"enum": ["ready", "degraded"]}, "node": {"type": "string"}, "reasons": reasons},
        required=("status", "node"),
    )
    yield Operation(
        "/readyz",
        "getReadiness",
        OPERATIONS,
        "Whether the node should receive requests",
        (Answer("It should; `degraded` if answers can be older than usual.", {JSON: ready}),),
        problems=("not-ready",),
        scope=None,
    )
    text = {PROMETHEUS_TYPE.partition(";")[0]: {"type": "string"}}
    for path, about, problems in (
        ("/metrics", "node", ()),
        ("/metrics/stream", "stream", ("too-many-requests", "not-ready")),
        ("/metrics/status", "servers and the lake", ()),
    ):
        yield Operation(
            path,
            f"getMetricsOf{path.removeprefix('/metrics').removeprefix('/').capitalize() or 'Node'}",
            OPERATIONS,
            f"Returns metrics of the {about}",
            (Answer("Prometheus' text format.", text),),
            problems=problems,
        )


def _of_contract() -> Iterator[Operation]:
    yield Operation(
        "/openapi.json",
        "getContract",
        CONTRACT,
        "Returns this document",
        (Answer("The document.", {JSON: ANY_OBJECT}),),
    )
    kind = {"$ref": "#/components/schemas/ProblemKind"}
    yield Operation(
        "/problems",
        "listProblems",
        CONTRACT,
        "Lists the kinds of problems",
        (
            Answer(
                "The kinds; a page for browsers.",
                {JSON: {"type": "array", "items": kind}, HTML: {"type": "string"}},
            ),
        ),
        problems=DOCUMENT_PROBLEMS,
        parameters=given.OF_DOCUMENT,
    )
    slug = Parameter(
        "slug", {"type": "string"}, "Slug of a problem.", "unknown-key", is_required=True, location="path"
    )
    yield Operation(
        "/problems/{slug}",
        "getProblem",
        CONTRACT,
        "Describes a kind of problem",
        (Answer("The kind; a page for browsers.", {JSON: kind, HTML: {"type": "string"}}),),
        problems=("not-found", *DOCUMENT_PROBLEMS),
        parameters=(slug, *given.OF_DOCUMENT),
    )

"""JSON Schemas of the answers that do not depend on read models."""

from query_api.changes.key_change import ChangeKind
from query_api.http.contract.json_schema import Schema, object_schema

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
MAYBE_COUNT: Schema = {"type": ["integer", "null"]}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}


def partition() -> Schema:
    """Return the schema of a partition's report, include/nodes/partition_report.py."""
    return object_schema(
        {
            **dict.fromkeys(
                ("read_model", "stage", "reported_by", "changelog_topic", "source_topic", "changelog_id"),
                TEXT,
            ),
            **dict.fromkeys(("version", "partition"), COUNT),
            **dict.fromkeys(("position", "end", "lag_records", "source_end", "events_behind"), MAYBE_COUNT),
            **dict.fromkeys(("is_held", "is_ready"), FLAG),
            "owner": MAYBE_TEXT,
            "standbys": {"type": "array", "items": TEXT},
            "folded": {"type": "object", "additionalProperties": {"type": "integer"}},
            "placement": {"enum": ["partitioned", "replicated", "redis"]},
        }
    )


def status() -> Schema:
    """Return the schema of the status."""
    section = object_schema(
        {"as_of": MAYBE_TEXT, "age_s": {"type": ["number", "null"]}, "error": MAYBE_TEXT, "data": {}}
    )
    return object_schema(
        {
            "node": TEXT,
            "url": TEXT,
            "at": {"type": "string", "format": "date-time"},
            "sections": {"type": "object", "additionalProperties": section},
        }
    )


def problem() -> Schema:
    """Return the schema of a problem."""
    error = object_schema({"field": TEXT, "error": TEXT})
    members: dict[str, Schema] = {
        "type": {"type": "string", "format": "uri", "description": "The kind of problem, for programs."},
        "title": TEXT,
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "This occurrence, for people."},
        "page": {
            "type": "string",
            "format": "uri-reference",
            "description": "Page about the kind of problem.",
        },
        "requestId": {
            "type": "string",
            "description": "Of the request, also in logs: the header X-Request-Id.",
        },
        "advice": TEXT,
        "reasons": {"type": "array", "items": TEXT},
        "errors": {
            "type": "array",
            "items": error,
            "description": "Of a command: every field that is not valid.",
        },
    }
    return object_schema(members, required=("type", "title", "status", "detail", "page"))


def problem_kind() -> Schema:
    """Return the schema of a kind of problem."""
    return object_schema(
        {
            "slug": TEXT,
            "type": TEXT,
            "statuses": {"type": "array", "items": {"type": "integer"}},
            "meaning": TEXT,
            "remedy": TEXT,
            "may_retry": {"type": "boolean"},
        }
    )


def event() -> Schema:
    """Return the schema of an event of a stream of changes."""
    kinds = [*ChangeKind, "snapshot", "present", "live", "reset", "closed"]
    return object_schema(
        {
            "event": {"type": "string", "enum": list(map(str, kinds))},
            "data": {"type": "string", "contentMediaType": "application/json"},
            "id": {"type": "string", "description": "The position after the event, for `after`."},
        },
        required=("event", "data"),
    )


def read_model() -> Schema:
    """Return the schema of a read model with its versions."""
    text = {"type": "string"}
    count = {"type": "integer", "minimum": 0}
    version = object_schema(
        {
            "version": count,
            "stage": text,
            "source_topic": text,
            "changelog_topic": text,
            "records_held_here": count,
        }
    )
    return object_schema(
        {
            "name": text,
            "source_topic": text,
            "partitions": count,
            "revision": count,
            "live": {"type": ["integer", "null"]},
            "versions": {"type": "array", "items": version},
        }
    )

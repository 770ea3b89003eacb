"""The operations that declarations add to the API: lookups, lookups of several records, and commands."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from include.declarations.api import Command, Lookup, ReadModelApi
from include.declarations.catalog import Catalog
from include.declarations.kinds.endpoint import INVALID_PARAMETER, Endpoint
from include.declarations.read_model import ReadModel
from query_api.http.contract.headers import LOCATION, OF_LOOKUP, OF_SEVERAL
from query_api.http.contract.json_schema import INT32_MAX, INT64_MAX, Schema, chosen_fields, object_schema
from query_api.http.contract.operations import JSON, UNCHANGED, Answer, Operation
from query_api.http.contract.parameters import DECIMALS, IF_NONE_MATCH, MIN_OFFSET, Parameter
from query_api.http.problem_kinds import is_kind, parameter_slug

COMMAND_PROBLEMS = (
    *("not-json", "invalid-command", "incomplete-body", "transfer-encoding", "body-timeout", "length-required", "body-too-large"),
    *("unsupported-media-type", "too-many-commands", "log-unavailable", "schema-refused", "outcome-unknown"),
)  # fmt: skip


def declared_operations(catalog: Catalog) -> Iterator[Operation]:
    """Yield the operations of all read models, ordered by the read model's name."""
    for api in catalog.apis:
        for lookup in api.lookups:
            yield _lookup(lookup, api)
        for model, endpoint in catalog.endpoints:
            if model.name == api.model.name:
                yield _endpoint(endpoint, model)
        for command in api.commands:
            yield _command(command, api)


def operation_id(path: str) -> str:
    """Return the part of a declared path after `/api/`, which is unique."""
    return path.removeprefix("/api/")


def _lookup(lookup: Lookup, api: ReadModelApi) -> Operation:
    model, join = api.model, lookup.join
    fields = chosen_fields(model, lookup.fields)
    if join is not None:
        fields |= chosen_fields(api.joined[join.read_model], join.fields, may_lack=True)
    key = Parameter(
        lookup.parameter,
        {"type": "string", "minLength": 1, "maxLength": lookup.max_key_bytes},
        f"{model.key_doc} At most {lookup.max_key_bytes} bytes of UTF-8.",
        lookup.example,
        is_required=True,
    )
    # An event's offset is no bound where events are folded under another key.
    takes_bound = model.rekeyed_from is None
    slug = parameter_slug(lookup.parameter)
    return Operation(
        lookup.path,
        operation_id(lookup.path),
        model.name,
        f"Looks up {', '.join(fields)} by {lookup.parameter}",
        (Answer("The fields of the key's record.", {JSON: object_schema(fields)}, OF_LOOKUP), UNCHANGED),
        problems=(
            *(
                f"missing-{slug}",
                f"{slug}-too-long",
                "invalid-decimals",
                "unknown-key",
                "unknown-model",
                "not-ready",
            ),
            *(("invalid-bound", "not-up-to-bound") if takes_bound else ("bound-of-another-topic",)),
        ),
        parameters=(key, *((MIN_OFFSET,) if takes_bound else ()), DECIMALS, IF_NONE_MATCH),
    )


def _endpoint(endpoint: Endpoint, model: ReadModel) -> Operation:
    schemas = endpoint.parameter_schemas()
    required = set(endpoint.required_parameters)
    about = (type(endpoint).__doc__ or "").partition("\n")[0]
    parameters = tuple(
        Parameter(
            name,
            {
                key: value
                for key, value in schemas.get(name, {"type": "string"}).items()
                if key not in DESCRIBING
            },
            str(schemas.get(name, {}).get("description", "")),
            schemas.get(name, {}).get("example"),
            is_required=name in required,
        )
        for name in endpoint.parameters
    )
    record = object_schema(chosen_fields(model, endpoint.fields))
    problems = [
        slug if is_kind(slug, HTTPStatus.BAD_REQUEST) else INVALID_PARAMETER for slug in endpoint.problems
    ]
    return Operation(
        endpoint.path,
        operation_id(endpoint.path),
        model.name,
        f"Looks up {', '.join(endpoint.fields)} of several records",
        (Answer("The fields of the records.", {JSON: dict(endpoint.answer_schema(record))}, OF_SEVERAL),),
        problems=(
            *problems,
            "invalid-decimals",
            "invalid-key",
            "too-many-keys",
            "unknown-model",
            "not-ready",
        ),
        parameters=(*parameters, DECIMALS),
        description=about,
        deprecation=endpoint.deprecation,
    )


DESCRIBING = frozenset({"description", "example"})


def _command(command: Command, api: ReadModelApi) -> Operation:
    fields = command.body_fields
    schema = object_schema(
        {name: one.json_schema() for name, one in fields.items()},
        required=[name for name, one in fields.items() if one.is_required],
    )
    return Operation(
        command.path,
        operation_id(command.path),
        api.model.name,
        f"Appends an event {command.event_type}",
        (
            Answer(
                "All in-sync replicas have the event; it is folded a moment later. Its offset is a bound for lookups.",
                {JSON: {"$ref": "#/components/schemas/AppendedEvent"}},
                (LOCATION,) if api.model.rekeyed_from is None else (),
                status=202,
            ),
        ),
        problems=COMMAND_PROBLEMS,
        method="post",
        description="The body must have a `Content-Length`. Foldlake does not deduplicate events by `id`.",
        scope="write",
        body=({**schema, "additionalProperties": False}, dict(command.example)),
    )


def appended_event() -> Schema:
    """Return the schema of a command's answer."""
    offset: dict[str, Any] = {"type": "integer", "format": "int64", "minimum": 0, "maximum": INT64_MAX}
    partition: dict[str, Any] = {"type": "integer", "format": "int32", "minimum": 0, "maximum": INT32_MAX}
    position = object_schema({"topic": {"type": "string"}, "partition": partition, "offset": offset})
    return object_schema({"id": {"type": "string"}, "position": position})

"""Strict validation of a command's body: an invalid body is rejected, and all of its errors are reported."""

import json
import uuid
from datetime import UTC, datetime
from typing import Any

from include.declarations.api import ID_FIELD, TIME_FIELD, Command
from include.declarations.command_fields import NumberText
from include.kafka.events import GenericEvent
from include.kafka.record_schema import RecordSchema
from include.kafka.wire_format import key_fault
from query_api.http.problems import ProblemError


class _InvalidJsonError(ValueError):
    """Input that Python's parser accepts although it is ambiguous or not valid JSON."""


def parse_command(body: bytes, command: Command, schema: RecordSchema) -> GenericEvent:
    """Return the event that a command's body describes, with a generated id if the body has none, and the current time.

    Raises ProblemError 400 with every error in `errors`.
    """
    given = _json_object(body)
    fields = command.body_fields
    allowed = ", ".join(sorted(fields))
    errors = [
        _error(name, "is missing") for name, one in fields.items() if one.is_required and name not in given
    ]
    errors += [
        _error(name, f"is unknown; allowed: {allowed}") for name in sorted(given.keys() - fields.keys())
    ]
    for name, one in fields.items():
        finding = one.error(given[name]) if name in given else None
        if name in given and not finding and name == schema.key_field:
            finding = key_fault(str(one.event_value(given[name])).encode())
        if finding:
            errors.append(_error(name, finding))
    if errors:
        detail = "; ".join(f"{e['field']} {e['error']}" for e in errors) + ". Nothing was written."
        raise ProblemError(400, "invalid-command", detail, errors=errors)
    values = {ID_FIELD.name: str(uuid.uuid4()), TIME_FIELD: datetime.now(UTC)}
    values |= {name: one.event_value(given[name]) for name, one in fields.items() if name in given}
    return GenericEvent(schema, values)


def _error(name: str, error: str) -> dict[str, str]:
    return {"field": name[:64].encode(errors="replace").decode(), "error": error}


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(
            body.decode(),
            parse_float=NumberText,
            parse_int=NumberText,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object,
        )
    except (ValueError, RecursionError) as error:
        detail = f"The body is not JSON in UTF-8 ({error}). Nothing was written."
        raise ProblemError(400, "not-json", detail) from error
    if not isinstance(value, dict):
        raise ProblemError(400, "not-json", "The body is not a JSON object. Nothing was written.")
    return value


def _refuse_constant(name: str) -> None:
    raise _InvalidJsonError(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _InvalidJsonError("a field is given twice")
    return fields

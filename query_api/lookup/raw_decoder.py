"""Fast decoding of state records for the materializer, which needs only a record's position fields.

Most of the cost of decoding a state record is in decimals and timestamps. Neither is needed here, so the record is
decoded with a schema without logical types.
"""

import io
import json
from collections.abc import Callable
from typing import Any, cast

import fastavro

from include.kafka.wire_format import HEADER_BYTES, MAGIC
from include.position import position_values


class UndecodableError(ValueError):
    """A changelog value that is not a state record of any known schema."""


def without_logical_types(schema: Any) -> Any:  # noqa: ANN401 - an Avro schema is JSON of any shape
    """Return the schema with each logical type replaced by its underlying type."""
    if isinstance(schema, dict):
        bare = {
            k: without_logical_types(v)
            for k, v in schema.items()
            if k not in {"logicalType", "precision", "scale"}
        }
        return bare["type"] if set(bare) == {"type"} else bare
    if isinstance(schema, list):
        return [without_logical_types(part) for part in schema]
    return schema


class RawDecoder:
    """Decodes state records without their logical types.

    `schema_text` returns a schema by its id, or None for an unknown id; it may raise when the registry is
    unavailable, and that error is not caught here.
    """

    def __init__(self, schema_text: Callable[[int], str | None]) -> None:
        self._schema_text = schema_text
        self._parsed: dict[int, Any] = {}

    def fields(self, value: bytes) -> dict[str, Any]:
        """Return a state record's fields; raises UndecodableError."""
        if len(value) < HEADER_BYTES or value[0] != MAGIC:
            message = f"not in Confluent's framing: starts with {value[:HEADER_BYTES].hex()!r}"
            raise UndecodableError(message)
        schema_id = int.from_bytes(value[1:HEADER_BYTES], "big")
        schema = self._parsed.get(schema_id) or self._parse(schema_id)
        try:
            fields: Any = fastavro.schemaless_reader(io.BytesIO(value[HEADER_BYTES:]), schema, None)
            position_values(fields)  # raises if one is missing
        except Exception as error:
            message = f"does not fit schema {schema_id}: {error!r}"
            raise UndecodableError(message) from error
        return cast(dict[str, Any], fields)

    def _parse(self, schema_id: int) -> Any:  # noqa: ANN401 - fastavro's parsed schemas have no public type
        text = self._schema_text(schema_id)
        if text is None:
            message = f"schema id {schema_id} is unknown to the registry"
            raise UndecodableError(message)
        self._parsed[schema_id] = fastavro.parse_schema(without_logical_types(json.loads(text)))
        return self._parsed[schema_id]

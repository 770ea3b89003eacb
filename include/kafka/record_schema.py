"""Avro record schemas as values: their text, names, fields and key."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.errors import SchemaError

KEY_PROPERTY = "foldlake.key"


@dataclass(frozen=True)
class RecordSchema:
    """An Avro record schema: its JSON text, its simple and full name, and its fields' names in order.

    `key_field` is the schema's property `foldlake.key`: the field whose value is also the Kafka record's key, if any.
    """

    text: str
    name: str
    full_name: str
    fields: tuple[str, ...]
    key_field: str | None = None

    @classmethod
    def parse(cls, text: str, origin: str) -> "RecordSchema":
        """Read a record schema from JSON; `origin` names the source of the text in error messages.

        Raises SchemaError when the text is not an Avro record.
        """
        try:
            parsed: Any = json.loads(text)
            name = parsed["name"]
            namespace = parsed.get("namespace", "")
            fields = tuple(field["name"] for field in parsed["fields"])
        except (ValueError, KeyError, TypeError) as error:
            message = f"{origin} is not an Avro record schema ({error!r}): give the JSON of a record with name and fields."
            raise SchemaError(message) from error
        simple = name.rpartition(".")[2]
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        return cls(text, simple, full, fields, parsed.get(KEY_PROPERTY))

    def parsed(self) -> dict[str, Any]:
        """Return the schema as the dictionary that fastavro expects."""
        schema: dict[str, Any] = json.loads(self.text)
        return schema

    def renamed_like(self, other: "RecordSchema") -> "RecordSchema":
        """Return this schema with the other's full name, so that Avro can resolve one against the other."""
        renamed = self.parsed() | {
            "name": other.name,
            "namespace": other.full_name.rpartition(".")[0],
        }
        return RecordSchema.parse(json.dumps(renamed), self.full_name)


def schema_file(path: Path) -> RecordSchema:
    """Return the record schema in a file; raises SchemaError when it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        message = f"Schema file {path} cannot be read ({error.strerror}): check the path."
        raise SchemaError(message) from error
    return RecordSchema.parse(text, str(path))

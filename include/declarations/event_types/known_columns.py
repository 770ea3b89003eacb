"""The columns that the expressions of a declaration can use, and the error for one that uses another."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from include.declarations.event_types.event_columns import NAMED, shared_fields, short_names
from include.declarations.event_types.field_types import self_contained
from include.declarations.rules.expression import (
    Expression,
    Fields,
    UsedColumn,
    place,
    used_columns,
)
from include.errors import ReadModelError
from include.kafka.record_schema import RecordSchema

INTERNAL_PREFIXES = ("record:", "event:")
SHOWN = 40


@dataclass(frozen=True)
class KnownColumn:
    """A column or a field of one. fields: those inside of it, by name; None if any name may be there, as in an array."""

    name: str
    fields: Mapping[str, "KnownColumn"] | None = field(default_factory=dict)


class KnownColumns:
    """The columns by name. Names are compared without regard to case, as in Spark."""

    def __init__(self, columns: Iterable[KnownColumn]) -> None:
        self._columns = {column.name.casefold(): column for column in columns}

    @classmethod
    def of_events(cls, schemas: tuple[RecordSchema, ...]) -> "KnownColumns":
        """Return the columns of decoded events of these types (event_columns.py)."""
        first = schemas[0]
        types = {one["name"]: self_contained(one["type"], first.parsed()) for one in first.parsed()["fields"]}
        columns = [KnownColumn(name, _inside(types.get(name))) for name in shared_fields(schemas)]
        by_type = {schema.name: schema for schema in schemas}
        for short in short_names(schemas):
            inside = _fields(by_type[short].parsed()) if short in by_type and short not in NAMED else {}
            columns.append(KnownColumn(short, inside))
        return cls(columns)

    @classmethod
    def of_fields(cls, names: Iterable[str]) -> "KnownColumns":
        """Return columns with these names, such as the fields of a state; what is inside of them is not checked."""
        return cls(KnownColumn(name, None) for name in names)

    def and_struct(self, name: str, fields: Iterable[str] | None) -> "KnownColumns":
        """Return these columns and a struct, which hides a column of its name; None: with any fields."""
        inside = None if fields is None else {one.casefold(): KnownColumn(one, None) for one in fields}
        return KnownColumns([*self._columns.values(), KnownColumn(name, inside)])

    def require(self, what: str, expression: Expression) -> None:
        """Raise ReadModelError if an expression in SQL has no valid syntax, or uses another column; a function is not checked.

        what: whose expression it is, for the message.
        """
        if not isinstance(expression, str):
            return
        try:
            used = used_columns(expression)
        except ReadModelError as error:
            raise ReadModelError(f"{what}: {error}") from error
        for column in used:
            self._require_column(what, expression, column)

    def require_fields(self, what: str, fields: Fields, names: Iterable[str] | None = None) -> None:
        """Raise ReadModelError as `require` does, for each field, or if the fields do not have these names."""
        if not isinstance(fields, Mapping):
            return
        if names is not None and sorted(fields) != sorted(names):
            raise ReadModelError(f"{what} gives {sorted(fields)}, but {sorted(names)} are declared.")
        for name, expression in fields.items():
            self.require(f"{what}, field {name}", expression)

    def _require_column(self, what: str, text: str, used: UsedColumn) -> None:
        if used.parts[0].startswith(INTERNAL_PREFIXES):
            return
        columns: Mapping[str, KnownColumn] | None = self._columns
        for number, part in enumerate(used.parts):
            if columns is None:
                return
            found = columns.get(part.casefold())
            if found is None:
                names = [one.name for one in columns.values()]
                raise ReadModelError(_unknown(what, text, used, number, names))
            columns = found.fields


def _unknown(what: str, text: str, used: UsedColumn, number: int, names: list[str]) -> str:
    part, outer = used.parts[number], ".".join(used.parts[:number])
    close = difflib.get_close_matches(part, names, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    inside = f"{outer} has no field {part}" if outer else f"there is no column {part}"
    shown = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    known = f" {'Its fields' if outer else 'Columns'}: {shown}." if names else ""
    return f"{what}: {text!r}: {place(text, used.start)}: {inside}.{hint}{known}"


def _inside(avro_type: Any) -> Mapping[str, KnownColumn] | None:  # noqa: ANN401 - JSON of any shape
    """Return the fields of a self-contained type; None if any name may be inside of it."""
    if isinstance(avro_type, list):
        found = [_inside(one) for one in avro_type if one != "null"]
        return found[0] if len(found) == 1 else None
    if isinstance(avro_type, dict):
        if avro_type["type"] == "record":
            return _fields(avro_type)
        return None if avro_type["type"] in {"array", "map"} else _inside(avro_type["type"])
    return {}


def _fields(record: Mapping[str, Any]) -> Mapping[str, KnownColumn]:
    return {
        one["name"].casefold(): KnownColumn(one["name"], _inside(self_contained(one["type"], record)))
        for one in record["fields"]
    }

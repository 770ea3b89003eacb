"""Compares the logical types of two record schemas: Avro itself resolves a writer's schema to a reader's without them.

Source: Apache Avro specification 1.12, "Schema Resolution" and "Logical Types".
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import fastavro.schema

from include.kafka.record_schema import RecordSchema

TIMES = frozenset(
    f"{prefix}timestamp-{unit}" for prefix in ("", "local-") for unit in ("millis", "micros", "nanos")
)
KNOWN = TIMES | {"decimal", "date", "time-millis", "time-micros", "duration"}
# Of Spark's decimals.
MAX_DIGITS = 38
# Milliseconds and microseconds convert to each other; what is below a millisecond is cut off.
EXACT_TIMES = frozenset({"timestamp-millis", "timestamp-micros"})
EXACT_LOCAL_TIMES = frozenset({"local-timestamp-millis", "local-timestamp-micros"})


@dataclass(frozen=True)
class LogicalType:
    """The logical type of a number or of bytes, such as decimal(18,2); precision and scale are 0 for other types."""

    name: str
    precision: int = 0
    scale: int = 0

    @classmethod
    def of(cls, avro_type: Any) -> "LogicalType | None":  # noqa: ANN401 - an Avro schema is JSON of any shape
        """Return the logical type of an Avro type; None if it has none that changes the meaning of its bytes."""
        name = avro_type.get("logicalType") if isinstance(avro_type, dict) else None
        if not isinstance(name, str) or name not in KNOWN:
            return None
        if name != "decimal":
            return cls(name)
        precision = int(avro_type.get("precision", 0))
        # Without one, Avro ignores the logical type.
        return cls(name, precision, int(avro_type.get("scale", 0))) if precision > 0 else None

    def converts_exactly_to(self, other: "LogicalType") -> bool:
        """Whether values of this type convert to the other type without a change, apart from a time's part of a millisecond.

        A decimal with too many digits before the point has no value in the other type: its record cannot be decoded.
        """
        if self.name == other.name == "decimal":
            return self.scale <= other.scale
        names = {self.name, other.name}
        return len(names) == 1 or names <= EXACT_TIMES or names <= EXACT_LOCAL_TIMES

    def __str__(self) -> str:
        """Return the type as in a message."""
        return f"{self.name}({self.precision},{self.scale})" if self.name == "decimal" else self.name


@dataclass(frozen=True)
class Comparison:
    """How a writer's schema differs from a reader's in logical types.

    converted: the reader's fields that are converted -> the writer's type, which they are decoded with.
    problem: why the writer's records cannot be read exactly; None if they can.
    """

    converted: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None


@lru_cache(maxsize=1024)
def compare(writer: RecordSchema, reader: RecordSchema) -> Comparison:
    """Compare the logical types of the fields that both schemas have. Never raises: a schema that cannot be compared is a problem.

    Only a field's own type is converted (a union of it and null included); a difference inside of a nested type is a problem.
    """
    if writer.problem is not None:
        return Comparison(problem=writer.problem)
    try:
        return _compare(writer, reader)
    except Exception as error:  # noqa: BLE001 - a foreign schema can raise anything; it concerns the records with its id only
        return Comparison(problem=f"the schema cannot be compared ({error!r})")


def _compare(writer: RecordSchema, reader: RecordSchema) -> Comparison:
    written, wanted = _expanded_fields(writer), _expanded_fields(reader)
    converted = {}
    for name, declared in wanted.items():
        source = next((written[n] for n in (name, *declared.get("aliases", ())) if n in written), None)
        if source is None:
            continue
        theirs, ours = dict(_leaves(source["type"], name)), dict(_leaves(declared["type"], name))
        for path in [path for path in ours if path in theirs and theirs[path] != ours[path]]:
            found, expected = theirs[path], ours[path]
            if path != name or found is None or expected is None or not found.converts_exactly_to(expected):
                return Comparison(
                    problem=f"{path} is {found or 'a plain value'}, not {expected or 'a plain value'}"
                )
            if found.precision > MAX_DIGITS:
                return Comparison(problem=f"{path} is {found}: a decimal has at most {MAX_DIGITS} digits")
            converted[name] = without_null(source["type"])
    return Comparison(converted)


def decoded_as(reader: RecordSchema, comparison: Comparison) -> RecordSchema:
    """Return the reader's schema with the writer's type of each field that is converted."""
    parsed = reader.parsed()
    defined: set[str] = set()
    for declared in parsed["fields"]:
        found = comparison.converted.get(declared["name"])
        if found is not None:
            named = found.get("name")
            if named in defined:
                found = named
            elif named is not None:
                defined.add(named)
            kept = declared["type"]
            declared["type"] = (
                [b if b == "null" else found for b in kept] if isinstance(kept, list) else found
            )
    return RecordSchema.parse(json.dumps(parsed), reader.full_name)


def field_types(schema: RecordSchema) -> dict[str, Any]:
    """Return field -> Avro type; for a union of null and one other type, that type."""
    return {name: without_null(declared["type"]) for name, declared in _expanded_fields(schema).items()}


def without_null(avro_type: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return the other type of a union of null and one other type; any other type unchanged."""
    if isinstance(avro_type, list):
        others = [branch for branch in avro_type if branch != "null"]
        return others[0] if len(others) == 1 else others
    return avro_type


def _expanded_fields(schema: RecordSchema) -> dict[str, dict[str, Any]]:
    """Return name -> field, with named types written out where they are used."""
    expanded: Any = fastavro.schema.expand_schema(schema.parsed())
    return {declared["name"]: declared for declared in expanded["fields"]}


def _leaves(avro_type: Any, path: str) -> Iterator[tuple[str, LogicalType | None]]:  # noqa: ANN401 - JSON of any shape
    """Yield the path of each value without parts, such as `lines[].price`, with its logical type."""
    kept = without_null(avro_type)
    if isinstance(kept, list):
        for branch in kept:
            kind = branch.get("name", branch["type"]) if isinstance(branch, dict) else branch
            yield from _leaves(branch, f"{path}|{kind}")
        return
    kind = kept.get("type") if isinstance(kept, dict) else kept
    if kind == "record":
        for declared in kept["fields"]:
            yield from _leaves(declared["type"], f"{path}.{declared['name']}")
    elif kind in {"array", "map"}:
        yield from _leaves(kept["items" if kind == "array" else "values"], f"{path}[]")
    elif isinstance(kind, dict | list):
        yield from _leaves(kind, path)
    else:
        yield path, LogicalType.of(kept)

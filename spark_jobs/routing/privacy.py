"""Privacy of outputs: pseudonyms, and the check that no public field is made of a personal one."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import concat, lit, sha2, unhex

from include.declarations.event_types.privacy import Privacy, field_classes, require_privacy
from include.kafka.record_schema import RecordSchema
from spark_jobs.folding.key_columns import referenced_columns

# RFC 2104, with SHA-256.
BLOCK_BYTES = 64
INNER, OUTER = 0x36, 0x5C


def pseudonym(text: Column, key: bytes) -> Column:
    """Return HMAC-SHA256 (RFC 2104) of a string in UTF-8, in lower-case hexadecimal; null for null."""
    block = (hashlib.sha256(key).digest() if len(key) > BLOCK_BYTES else key).ljust(BLOCK_BYTES, b"\0")
    inner, outer = (lit(bytes(byte ^ pad for byte in block)) for pad in (INNER, OUTER))
    return sha2(concat(outer, unhex(sha2(concat(inner, text.cast("string").cast("binary")), 256))), 256)


@dataclass(frozen=True)
class Item:
    """The column of an element of an array, and the array."""

    column: str
    array: Column


def with_privacy(
    writer: str,
    output: RecordSchema,
    sources: Iterable[RecordSchema],
    events: DataFrame,
    fields: Mapping[str, Column],
    key: bytes,
    item: Item | None,
) -> dict[str, Column]:
    """Return the fields of outputs, with the keyed hash in place of the value of each pseudonym.

    writer: names the declaration in messages. item: what a route writes an output for, if that is an element of an array.
    Raises ReadModelError if a public field is made of a personal one.
    """
    columns = _columns_of(events, fields)
    if item is not None:
        (array,) = _columns_of(events, {item.column: item.array}).values()
        columns = {name: _resolve_item(found, item.column, array) for name, found in columns.items()}
    require_privacy(writer, output, sources, columns)
    classes = field_classes(output)
    return {
        name: pseudonym(column, key) if classes[name] is Privacy.PSEUDONYM else column
        for name, column in fields.items()
    }


def _columns_of(events: DataFrame, fields: Mapping[str, Column]) -> dict[str, set[str]]:
    """Return the event columns that each field is made of."""
    frame: Any = events.select(*(column.alias(name) for name, column in fields.items()))
    expressions = frame._jdf.queryExecution().analyzed().expressions()  # noqa: SLF001 - as in key_columns.py
    return {name: referenced_columns(expressions.apply(i)) for i, name in enumerate(fields)}


def _resolve_item(columns: set[str], item: str, array: set[str]) -> set[str]:
    """Replace the column of an array's element by the columns that the array is made of."""
    resolved = set()
    for column in columns:
        first, dot, rest = column.partition(".")
        resolved |= {f"{one}{dot}{rest}" for one in array} if first == item else {column}
    return resolved

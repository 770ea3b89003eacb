"""Privacy of outputs: pseudonyms, and the check that no public field is made of a personal one."""

import hashlib
from collections.abc import Iterable, Mapping
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


def with_privacy(
    writer: str,
    output: RecordSchema,
    sources: Iterable[RecordSchema],
    events: DataFrame,
    fields: Mapping[str, Column],
    key: bytes,
    own: Mapping[str, set[str]],
) -> dict[str, Column]:
    """Return the fields of outputs, with the keyed hash in place of the value of each pseudonym.

    writer: names the declaration in messages. own: further columns of `events`, which hide those of its name -> the columns that each is
    made of. A name can also be that of a column's field, `<column>.<field>`.
    Raises ReadModelError if a public field is made of a personal one.
    """
    columns = {
        name: {column for one in found for column in _origins(one, own)}
        for name, found in columns_of(events, fields).items()
    }
    require_privacy(writer, output, sources, columns)
    classes = field_classes(output)
    return {
        name: pseudonym(column, key) if classes[name] is Privacy.PSEUDONYM else column
        for name, column in fields.items()
    }


def columns_of(events: DataFrame, fields: Mapping[str, Column]) -> dict[str, set[str]]:
    """Return the event columns that each field is made of."""
    frame: Any = events.select(*(column.alias(name) for name, column in fields.items()))
    expressions = frame._jdf.queryExecution().analyzed().expressions()  # noqa: SLF001 - as in key_columns.py
    return {name: referenced_columns(expressions.apply(i)) for i, name in enumerate(fields)}


def _origins(column: str, own: Mapping[str, set[str]]) -> set[str]:
    """Return the event columns that a column means, or is made of."""
    if column.casefold() in own:
        return set(own[column.casefold()])
    first, dot, rest = column.partition(".")
    return {f"{one}{dot}{rest}" for one in own.get(first.casefold(), {first})}

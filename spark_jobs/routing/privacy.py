"""Privacy of a route's outputs: pseudonyms, and the check that no public field is made of a personal one."""

import hashlib
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import concat, lit, sha2, unhex

from include.declarations.privacy import Privacy, field_classes, require_privacy
from include.declarations.route import Route
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
    route: Route, events: DataFrame, item: str | None, fields: Mapping[str, Column], key: bytes
) -> dict[str, Column]:
    """Return the fields of a route's outputs, with the keyed hash in place of the value of each pseudonym.

    item: name of the column of an element of `Route.each`. Raises ReadModelError if a public field is made of a personal one.
    """
    columns = _columns_of(events, fields)
    if item is not None and route.each is not None:
        (array,) = _columns_of(events, {item: route.each()}).values()
        columns = {name: _resolve_item(found, item, array) for name, found in columns.items()}
    require_privacy(route.name, route.output_schema, route.event_schemas, columns)
    classes = field_classes(route.output_schema)
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

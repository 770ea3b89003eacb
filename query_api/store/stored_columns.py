"""Stored records as Arrow columns: their headers and checksums are read for a whole batch at once.

Apart from stored_form.py, because pyarrow and numpy take time and memory to import, which most processes of a node do not spend.
"""

from typing import NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from query_api.store.base import Page
from query_api.store.stored_form import CHECKSUM_BYTES, HEADER_BYTES, BadRecordError

# The layout of a record's header; see stored_form.py.
HEADER = np.dtype([("checksum", ">u4"), ("event_count", ">i8"), ("offset", ">i8")])
# `binary_slice` without an end fails for some batches (pyarrow 23).
END = 2**31 - 1


class RecordColumns(NamedTuple):
    """Records in the order of their keys: key (string), value (binary: that of the changelog), event_count and offset (int64)."""

    key: pa.Array
    value: pa.Array
    event_count: pa.Array
    offset: pa.Array


def record_columns(page: Page) -> RecordColumns:
    """Return the records of a page; raises BadRecordError when a checksum does not match."""
    keys, stored = page.keys, page.stored
    column = pa.array(stored, pa.binary())
    heads = pc.binary_slice(column, 0, HEADER_BYTES)
    number = len(stored)
    if number and pc.min(pc.binary_length(heads)).as_py() < HEADER_BYTES:
        raise BadRecordError("a record is shorter than its header")
    # Of an empty array, there is no buffer.
    header = np.frombuffer(heads.buffers()[2], HEADER, number) if number else np.empty(0, HEADER)
    bodies = [record[CHECKSUM_BYTES:] for record in stored]
    found = np.fromiter(map(crc32, bodies, map(crc32, keys)), np.uint32, number)
    wrong = np.flatnonzero(found != header["checksum"])
    if len(wrong):
        raise BadRecordError(f"checksum of the record of key {keys[wrong[0]]!r} does not match")
    return RecordColumns(
        pa.array(keys, pa.string()),
        pc.binary_slice(column, HEADER_BYTES, END),
        pa.array(header["event_count"].astype(np.int64)),
        pa.array(header["offset"].astype(np.int64)),
    )

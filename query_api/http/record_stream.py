"""All records of a partition of this node's own store as one Arrow stream, for checks, copies and exports of many records.

The records are those of the changelog, as they are stored: a listing as JSON decodes each record, which takes most of its time. A batch is of
one commit of the store, with the changelog offset that the store had read at least. A client continues after the last key that it has received.
Source of the format: https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format.
"""

from collections.abc import Iterator
from itertools import compress
from typing import Any
from zlib import crc32

import pyarrow as pa

from include.nodes.record_requests import BATCH_END, BATCH_POSITION, NO_SAMPLING, KeySample
from include.nodes.record_stream import RECORD_SCHEMA
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.lookup_results import LocalPage
from query_api.lookup.routing import KeyLocation
from query_api.store.base import ALL_KEYS, KeyRange, Page, StoreReader
from query_api.store.stored_columns import RecordColumns, record_columns

# About half a megabyte. A batch occupies the interpreter for about 10 ms, which hardly delays a lookup.
BATCH_RECORDS = 4096


class _Sink:
    """What the writer of the stream has written since the last `take`."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._written = 0

    def write(self, data: bytes) -> int:
        """Add bytes."""
        self._parts.append(bytes(data))
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        """Return how many bytes were written in all."""
        return self._written

    def flush(self) -> None:
        """Do nothing."""

    def take(self) -> bytes:
        """Return the bytes, once."""
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


class RecordStream:
    """The records of a partition after a key. The first batch is read at once, so that a failure has an answer of its own.

    Raises LookupFailedError, also while it is iterated: the connection then ends before the stream does.
    """

    def __init__(
        self,
        local: LocalLookup,
        location: KeyLocation,
        after: bytes,
        keys: KeyRange = ALL_KEYS,
        sample: KeySample = NO_SAMPLING,
    ) -> None:
        self._local = local
        self._location = location
        self._keys = keys
        self._sample = sample
        self._first = self._page(after)

    @property
    def first(self) -> LocalPage[Any]:
        """The first batch, whose age is that of the stream."""
        return self._first

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes of the stream, a batch at a time."""
        location = self._location
        about = {
            "read_model": location.model.name,
            "version": str(location.version),
            "partition": str(location.partition),
            "node": location.state.node,
            "role": location.role.value,
        }
        sink = _Sink()
        found = self._first
        with pa.ipc.new_stream(sink, RECORD_SCHEMA.with_metadata(about)) as writer:
            while True:
                columns, following = found.page
                metadata = {BATCH_POSITION: str(found.next_offset)}
                # A stream that was cut off between two batches looks like a complete one.
                if following is None:
                    metadata[BATCH_END] = "true"
                writer.write_batch(pa.record_batch(list(columns), RECORD_SCHEMA), custom_metadata=metadata)
                yield sink.take()
                if following is None:
                    break
                found = self._page(following)
        yield sink.take()

    def _page(self, after: bytes) -> LocalPage[tuple[RecordColumns, bytes | None]]:
        """Return the next batch, and the key after which the one after it starts."""
        partition, keys = self._location.partition, self._keys

        def read(store: StoreReader) -> tuple[RecordColumns, bytes | None]:
            page = store.scan(partition, keys, after=after, limit=BATCH_RECORDS)
            return record_columns(_sampled(page, self._sample)), page.next

        return self._local.read_partition(self._location, read)


def _sampled(page: Page, sample: KeySample) -> Page:
    """Return the records of a page that are in a sample."""
    if sample.buckets == 1:
        return page
    chosen = [crc32(key) % sample.buckets == sample.bucket for key in page.keys]
    return page._replace(keys=[*compress(page.keys, chosen)], stored=[*compress(page.stored, chosen)])

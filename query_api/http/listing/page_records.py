"""The records of a page as dictionaries for JSON: all of them, or those in a box."""

from typing import Any, NamedTuple

from include.nodes.key_sample import KeySample
from query_api.http.lookups.record_json import record_fields
from query_api.lookup.bounding_box import Area
from query_api.lookup.key_location import KeyLocation
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.local_results import AnswerAge, LocalPage
from query_api.lookup.model_pages import Part, PartQuery
from query_api.store.base import KeyRange

# Read for one page of a box, whose records may be few: decoding them occupies a worker for about 0.1 s.
READ_RECORDS = 5000


class PageRecords(NamedTuple):
    """Records in the order of their keys. next: the key after which the next page starts; None after the last page."""

    records: list[dict[str, Any]]
    next: bytes | None


def page_records(local: LocalLookup, found: LocalPage, area: Area | None, limit: int) -> PageRecords:
    """Return at most `limit` records of a page of this node's store, in an area if one is given; raises LookupFailedError."""
    decode = local.decoder(found)
    records: list[dict[str, Any]] = []
    read = b""
    for key, stored in found.page.records:
        if len(records) == limit:
            return PageRecords(records, read)
        read = key
        record = decode(stored)
        if area is None or area.has(record.state):
            records.append(record_fields(key, record))
    return PageRecords(records, found.page.next)


def read_limit(area: Area | None, limit: int) -> int:
    """Return how many records to read for a page of `limit` records."""
    return limit if area is None else max(limit, READ_RECORDS)


def page_part(local: LocalLookup, location: KeyLocation, after: bytes, query: PartQuery) -> Part:
    """Return records of a partition of this node's store; raises LookupFailedError."""
    limit = read_limit(query.area, query.limit)
    found = local.page(location, after, limit, KeySample(), KeyRange(query.prefix))
    records, following = page_records(local, found, query.area, query.limit)
    return Part(records, following, AnswerAge.of_partition(found.partition), found.next_offset)

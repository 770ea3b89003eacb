"""Lists records page by page: of one partition in this node's own store, for verification, or of a whole read model from all nodes.

`GET /api/read-models/<name>/records?partition=P` is never proxied to another node, so that each node's own store can
be inspected, the owner's and the standby's. Without a partition, the whole read model is listed from all nodes; with a key, the
request is a lookup of its record.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from flask import Blueprint, Response, request

from include.nodes.peers import HOP_HEADER, VERSION_HEADER
from include.nodes.record_requests import ARROW, ARROW_TYPE, KeySample
from query_api.http.answers import NODE_HEADER, StreamBody, age_headers, combined_headers
from query_api.http.contract.parameters import (
    AFTER_KEY,
    CURSOR,
    DEFAULT_LIMIT,
    MAX_DIGITS,
    MAX_LIMIT,
    MAX_NUMBER,
    OF_MODEL,
    OF_PARTITION,
    OF_RECORD_STREAM,
    names,
)
from query_api.http.delivery.field_names import DEPRECATION, document_response
from query_api.http.json_text import record_fields
from query_api.http.limits.rate_limit import client_of
from query_api.http.lookups.router import KEY_PARAMETER, version_number
from query_api.http.problems import ProblemError, busy_problem
from query_api.http.request_parameters import Areas, has_text_decimals, parameters, require_prefix
from query_api.lookup.bounding_box import Area
from query_api.lookup.client_slots import ClientSlots, NoFreeSlotError
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.lookup_results import AnswerAge, LocalPage, RecordPage
from query_api.lookup.lookups import Lookups
from query_api.lookup.model_pages import Cursor, InvalidCursorError, ModelPages, Part, PartQuery
from query_api.lookup.routing import KeyLocation
from query_api.store.base import KeyRange

# Read for one page of a box, whose records may be few: decoding them occupies a worker for about 0.1 s.
READ_RECORDS = 5000


class PageRecords(NamedTuple):
    """Records in the order of their keys. next: the key after which the next page starts; None after the last page."""

    records: list[dict[str, Any]]
    next: bytes | None


def page_records(local: LocalLookup, found: LocalPage[RecordPage], query: PartQuery) -> PageRecords:
    """Return the records of a page of this node's store, as the query limits them; raises LookupFailedError."""
    decode = local.decoder(found)
    records: list[dict[str, Any]] = []
    read = b""
    for key, stored in found.page.records:
        if len(records) == query.limit:
            return PageRecords(records, read)
        read = key
        record = decode(stored)
        if query.area is None or query.area.has(record.state):
            records.append(record_fields(key, record, text_decimals=query.text_decimals))
    return PageRecords(records, found.page.next)


def read_limit(area: Area | None, limit: int) -> int:
    """Return how many records to read for a page of `limit` records."""
    return limit if area is None else max(limit, READ_RECORDS)


def page_part(local: LocalLookup, location: KeyLocation, after: bytes, query: PartQuery) -> Part:
    """Return records of a partition of this node's store; raises LookupFailedError."""
    limit = read_limit(query.area, query.limit)
    found = local.page(location, after, limit, KeyRange(query.prefix))
    records, following = page_records(local, found, query)
    return Part(records, following, AnswerAge.of_partition(found.partition), found.next_offset)


class ModelListing:
    """Answers requests for the pages of a whole read model."""

    def __init__(self, lookups: Lookups) -> None:
        self._node = lookups.local.node_name
        self.pages = ModelPages(lookups, page_part)

    def answer(self, read_model: str, cursor: str | None, version: int | None, query: PartQuery) -> Response:
        """Return a page as JSON; raises ProblemError, LookupFailedError."""
        try:
            start = None if cursor is None else Cursor.parse(cursor)
            page = self.pages.page(read_model, start, version, query)
        except InvalidCursorError as error:
            raise ProblemError(
                400, "invalid-cursor", "cursor must be `next` of the previous page: begin again without it."
            ) from error
        document = {
            "read_model": page.read_model,
            "version": page.version,
            "records": page.records,
            "next": None if page.next is None else page.next.text,
        }
        headers = combined_headers(self._node, page.version, page.age)
        return document_response(document, request, headers.items())


SAMPLE = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


def listing_blueprint(
    lookups: Lookups,
    models: ModelListing,
    areas: Areas,
    look_up: Callable[[str], Response],
    streams: ClientSlots,
) -> Blueprint:
    """Return the listings as a Flask blueprint.

    look_up: answers a request with a key, given the read model's name. streams: limits how many records are streamed at a time.
    """
    blueprint = Blueprint("listing", __name__)
    local = lookups.local

    @blueprint.get("/api/read-models/<name>/records")
    def list_records(name: str) -> Response:
        if KEY_PARAMETER in request.args:
            return look_up(name)
        query = request.query_string.decode("latin-1")
        if "format" in request.args:
            return _stream(local, streams, name, parameters(query, names(OF_RECORD_STREAM)))
        is_of_model = "partition" not in request.args
        given = parameters(query, names(OF_MODEL if is_of_model else OF_PARTITION))
        limit = _number("limit", given.get("limit"), DEFAULT_LIMIT, 1, MAX_LIMIT)
        area = areas.parse(name, given.get("within"))
        prefix = require_prefix("prefix", given.get("prefix", ""), local.max_key_bytes)
        version = version_number(given.get("version"))
        asked = PartQuery(limit, area, prefix, has_text_decimals(given))
        if is_of_model:
            return models.answer(name, given.get("cursor"), version, asked)
        partition = _number("partition", given.get("partition"), None, 0, MAX_NUMBER)
        after = _after(given, local.max_key_bytes)
        location = local.locate_partition(name, partition, version)
        found = local.page(location, after, read_limit(area, limit), KeyRange(prefix))
        document = _document(found, page_records(local, found, asked))
        response = document_response(document, request, _headers(found).items())
        if AFTER_KEY.name in given and HOP_HEADER not in request.headers:
            response.headers.update(DEPRECATION)
        return response

    return blueprint


def _headers(found: LocalPage[Any]) -> dict[str, str]:
    location = found.location
    return {
        "Cache-Control": "no-store",
        VERSION_HEADER: str(location.version),
        NODE_HEADER: location.state.node,
        "Foldlake-Role": location.role.value,
        **dict(age_headers(found.partition)),
    }


def _stream(local: LocalLookup, streams: ClientSlots, name: str, given: Mapping[str, str]) -> Response:
    """Answer with all records of a partition as one stream; raises ProblemError, LookupFailedError."""
    # It imports pyarrow and numpy, which most workers never need.
    from query_api.http.record_stream import RecordStream  # noqa: PLC0415

    if given["format"] != ARROW:
        raise ProblemError(400, "invalid-format", f"format must be {ARROW}, or be left out for JSON.")
    partition = _number("partition", given.get("partition"), None, 0, MAX_NUMBER)
    after, prefix = (
        require_prefix(parameter, given.get(parameter, ""), local.max_key_bytes)
        for parameter in ("after", "prefix")
    )
    sample = _sample(given.get("sample"))
    location = local.locate_partition(name, partition, version_number(given.get("version")))
    with ExitStack() as opening:
        try:
            opening.enter_context(streams.slot(client_of(request.environ)))
        except NoFreeSlotError as error:
            raise busy_problem(error, "too-many-streams", retry_after_s=5) from error
        stream = RecordStream(local, location, after, KeyRange(prefix), sample)
        body = StreamBody(iter(stream), opening.pop_all())
    return Response(body, content_type=ARROW_TYPE, headers=_headers(stream.first))


def _after(given: Mapping[str, str], max_bytes: int) -> bytes:
    """Return the key after which a page of a partition begins. `after` is the deprecated name of `cursor`; raises ProblemError."""
    if CURSOR.name in given and AFTER_KEY.name in given:
        raise ProblemError(400, "invalid-after", "after is the deprecated name of cursor: give only cursor.")
    name = AFTER_KEY.name if AFTER_KEY.name in given else CURSOR.name
    return require_prefix(name, given.get(name, ""), max_bytes)


def _document(found: LocalPage[RecordPage], page: PageRecords) -> dict[str, object]:
    location = found.location
    return {
        "read_model": location.model.name,
        "version": location.version,
        "partition": location.partition,
        "node": location.state.node,
        "role": location.role.value,
        "total": found.page.total,
        "position": found.next_offset,
        "records": page.records,
        "next": None if page.next is None else page.next.decode(),
    }


def _number(name: str, text: str | None, default: int | None, low: int, high: int) -> int:
    if text is None and default is not None:
        return default
    digits = text or ""
    if not (
        digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS and low <= int(digits) <= high
    ):
        raise ProblemError(400, f"invalid-{name}", f"{name} must be a whole number from {low} to {high}.")
    return int(digits)


def _sample(text: str | None) -> KeySample:
    if text is None:
        return KeySample()
    matched = SAMPLE.fullmatch(text)
    if matched is None or not int(matched[1]) < int(matched[2]):
        raise ProblemError(
            400,
            "invalid-sample",
            "sample must be bucket/buckets, two whole numbers with bucket < buckets, such as 3/100.",
        )
    return KeySample(int(matched[1]), int(matched[2]))

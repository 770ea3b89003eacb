"""Lists the records of a whole read model, from all nodes: `GET /api/read-models/<name>/records` without a partition."""

from typing import Any

from flask import Response

from include.nodes.peers import LAG_HEADER
from query_api.http.json_text import dumps
from query_api.http.lookups.record_json import record_fields
from query_api.http.problems import ProblemError
from query_api.lookup.local_lookup import LocalLookup, LocalPage
from query_api.lookup.lookups import Lookups
from query_api.lookup.model_pages import Cursor, InvalidCursorError, ModelPages


class ModelListing:
    """Answers requests for the pages of a whole read model."""

    def __init__(self, lookups: Lookups) -> None:
        self._node = lookups.local.node_name
        self._pages = ModelPages(lookups, _fields)

    def answer(self, read_model: str, cursor: str | None, version: int | None, limit: int) -> Response:
        """Return a page as JSON; raises ProblemError, LookupFailedError."""
        page = self._pages.page(read_model, _cursor(cursor), version, limit)
        body = dumps(
            {
                "read_model": page.read_model,
                "version": page.version,
                "records": page.records,
                "next": None if page.next is None else page.next.text,
            }
        )
        headers = {"Cache-Control": "no-store", "Foldlake-Node": self._node, LAG_HEADER: str(page.lag_ms)}
        return Response(body, content_type="application/json", headers=headers)


def _fields(local: LocalLookup, found: LocalPage) -> list[dict[str, Any]]:
    decode = local.decoder(found)
    return [record_fields(key, decode(record)) for key, record in found.page.records]


def _cursor(text: str | None) -> Cursor | None:
    if text is None:
        return None
    try:
        return Cursor.parse(text)
    except InvalidCursorError as error:
        raise ProblemError(
            400, "invalid-cursor", "cursor must be `next` of the previous page: begin again without it."
        ) from error

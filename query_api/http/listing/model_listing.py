"""Lists the records of a whole read model, from all nodes: `GET /api/read-models/<name>/records` without a partition."""

from flask import Response

from query_api.http.answer_headers import combined_headers
from query_api.http.json_text import dumps
from query_api.http.listing.page_records import page_part
from query_api.http.problems import ProblemError
from query_api.lookup.lookups import Lookups
from query_api.lookup.model_pages import Cursor, InvalidCursorError, ModelPages, PartQuery


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
        body = dumps(
            {
                "read_model": page.read_model,
                "version": page.version,
                "records": page.records,
                "next": None if page.next is None else page.next.text,
            }
        )
        headers = combined_headers(self._node, page.version, page.age)
        return Response(body, content_type="application/json", headers=headers)

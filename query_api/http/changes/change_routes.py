"""`GET /api/read-models/<name>/changes`: the stream of what happens to the keys of a read model, from any node."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from flask import Blueprint, Response, request

from include.errors import KafkaUnavailableError
from include.nodes.field_names import FieldNames
from include.nodes.peers import VERSION_HEADER
from query_api.changes.change_feeds import ChangeFeed, ChangeFeeds, FeedSource
from query_api.changes.key_change import Selection
from query_api.changes.recent_changes import InvalidPositionError, RecentChanges, StreamPosition
from query_api.changes.resumption import why_not_resumable
from query_api.http.answers import NODE_HEADER, StreamBody
from query_api.http.changes.change_stream import ChangeStream, StreamStart
from query_api.http.changes.events import Snapshot
from query_api.http.contract.parameters import LAST_EVENT_ID, OF_CHANGES, names
from query_api.http.delivery.field_names import names_headers, requested_names
from query_api.http.json_text import RecordForm
from query_api.http.limits.rate_limit import client_of
from query_api.http.lookups.router import version_number
from query_api.http.problems import ProblemError, busy_problem
from query_api.http.request_parameters import Areas, has_text_decimals, parameters, require_key
from query_api.lookup.client_slots import ClientSlots, NoFreeSlotError
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.lookup_results import FailureReason, LookupFailedError
from query_api.lookup.model_pages import ModelPages
from query_api.lookup.routing import KeyLocation
from query_api.metrics.node_metrics import CHANGE_STREAMS

PARAMETERS = names(OF_CHANGES)
READY_TIMEOUT_S = 5.0
HEADERS = {
    "Cache-Control": "no-store",
    # Reverse proxies that collect an answer before they pass it on do not with this header (nginx).
    "X-Accel-Buffering": "no",
}


@dataclass(frozen=True)
class StreamRequest:
    """What a client asks for. version: None for the live one. position: after which the stream continues, if given.

    form: of the records.
    """

    read_model: str
    version: int | None
    selection: Selection
    position: StreamPosition | None
    wants_snapshot: bool
    form: RecordForm


class ChangeStreams:
    """Opens streams. One per HTTP worker process."""

    def __init__(
        self, local: LocalLookup, pages: ModelPages, feeds: ChangeFeeds, areas: Areas, slots: ClientSlots
    ) -> None:
        self._local = local
        self._pages = pages
        self._feeds = feeds
        self._areas = areas
        self._slots = slots

    def locate(self, asked: StreamRequest) -> KeyLocation:
        """Return the version whose changes a client asks for, without a key; raises LookupFailedError."""
        return self._local.locate(asked.read_model, b"", asked.version)

    def open(self, asked: StreamRequest, location: KeyLocation, client: str) -> StreamBody:
        """Return the stream that a client asks for; raises ProblemError, LookupFailedError."""
        read_model = asked.read_model
        source = FeedSource(
            read_model,
            location.version,
            location.model.versions[location.version].changelog_topic,
            location.model.partition_count,
            self._areas.locations.get(read_model),
        )
        with ExitStack() as opening:
            try:
                opening.enter_context(self._slots.slot(client))
            except NoFreeSlotError as error:
                raise busy_problem(error, "too-many-streams", retry_after_s=5) from error
            feed = opening.enter_context(self._feeds.feed(source))
            recent = feed.wait_until_ready(READY_TIMEOUT_S)
            if recent is None:
                raise _unavailable(f"The changelog {source.topic} cannot be read.")
            stream = ChangeStream(feed, recent, asked.selection, self._start(asked, feed, recent))
            opening.enter_context(CHANGE_STREAMS.labels(read_model).track_inprogress())
            return StreamBody(stream.frames(), opening.pop_all())

    def _start(self, asked: StreamRequest, feed: ChangeFeed, recent: RecentChanges) -> StreamStart:
        source, position = feed.source, asked.position
        reason = ""
        if position is not None:
            try:
                reason = why_not_resumable(position, feed, recent)
            except KafkaUnavailableError as error:
                raise _unavailable(str(error)) from error
        if reason and not asked.wants_snapshot:
            detail = f"Changes after this position may be missing: {reason}. Begin again without a position, or ask for snapshot=true."
            raise ProblemError(410, "position-gone", detail)
        snapshot = None
        if asked.wants_snapshot:
            read = partial(self._pages.part, source.read_model)
            snapshot = Snapshot(read, source.version, source.partitions, asked.selection, form=asked.form)
        return StreamStart(
            None if reason else position,
            snapshot,
            follows_live=asked.version is None,
            form=asked.form,
        )

    def request(
        self, read_model: str, query: str, last_event_id: str | None, names: FieldNames
    ) -> StreamRequest:
        """Return what a request asks for; raises ProblemError."""
        given = parameters(query, PARAMETERS)
        if "key" in given and "prefix" in given:
            raise ProblemError(400, "key-and-prefix", "Give either key or prefix.")
        limit = self._local.max_key_bytes
        key, prefix = (
            require_key(name, given[name], limit) if name in given else None for name in ("key", "prefix")
        )
        area = self._areas.parse(read_model, given.get("within"))
        return StreamRequest(
            read_model,
            version_number(given.get("version")),
            Selection(key, prefix or b"", area),
            # A browser that connects again sends the header, with the query of the first time.
            _position(last_event_id or given.get("after")),
            _flag("snapshot", given.get("snapshot")),
            RecordForm(has_text_decimals(given), names),
        )


def _unavailable(detail: str) -> ProblemError:
    return ProblemError(503, "log-unavailable", detail, retry_after_s=1)


def _position(text: str | None) -> StreamPosition | None:
    if not text:
        return None
    try:
        return StreamPosition.parse(text)
    except InvalidPositionError as error:
        detail = f"{str(error)!r} is not the id of an event of a stream: begin again without a position."
        raise ProblemError(400, "invalid-position", detail) from error


def _flag(name: str, text: str | None) -> bool:
    if text not in {None, "true", "false"}:
        raise ProblemError(400, f"invalid-{name}", f"{name} must be true or false.")
    return text == "true"


def changes_blueprint(streams: ChangeStreams, is_stopping: Callable[[], bool]) -> Blueprint:
    """Return the streams as a Flask blueprint."""
    blueprint = Blueprint("changes", __name__)

    @blueprint.get("/api/read-models/<name>/changes")
    def get_changes(name: str) -> Response:
        if is_stopping():
            raise LookupFailedError(FailureReason.NOT_READY, "The node shuts down.")
        style = requested_names(request)
        asked = streams.request(
            name, request.query_string.decode("latin-1"), request.headers.get(LAST_EVENT_ID.name), style
        )
        location = streams.locate(asked)
        own = {**HEADERS, VERSION_HEADER: str(location.version), NODE_HEADER: location.state.node}
        headers = {**own, **dict(names_headers(style, request))}
        if request.method == "HEAD":
            return Response(content_type="text/event-stream", headers=headers)
        body = streams.open(asked, location, client_of(request.environ))
        response = Response(iter(body), content_type="text/event-stream", headers=headers)
        response.call_on_close(body.close)
        return response

    return blueprint

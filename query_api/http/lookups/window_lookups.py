"""Lookups of the windows of one item in a range of time: each window is a key, looked up on its own node."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from urllib.parse import quote

from flask import Blueprint, Response, request

from include.declarations.read_model import ReadModel
from include.declarations.windows.window_lookup import SINCE, UNTIL, WindowLookup
from query_api.http.answer_headers import combined_headers
from query_api.http.json_text import dumps
from query_api.http.lookups.record_texts import RecordTexts
from query_api.http.problems import ProblemError
from query_api.http.query_string import parameters
from query_api.lookup.local_results import AnswerAge
from query_api.lookup.lookups import Lookups

# A page of that many windows takes some milliseconds, and as many requests to other nodes as they own keys of it.
MAX_WINDOWS = 500
THREADS = 8


def window_blueprint(lookups: Lookups, declared: Iterable[tuple[ReadModel, WindowLookup]]) -> Blueprint:
    """Return the window lookups as a Flask blueprint."""
    blueprint = Blueprint("windows", __name__)
    # Lookups on other nodes wait for answers, not for a processor.
    pool = ThreadPoolExecutor(THREADS, "windows")
    node = lookups.local.node_name
    for model, lookup in declared:
        records = RecordTexts(lookups, model, lookup.fields)
        blueprint.add_url_rule(lookup.path, lookup.path.replace(".", ":"), _view(lookup, records, pool, node))
    return blueprint


def _view(
    lookup: WindowLookup, records: RecordTexts, pool: ThreadPoolExecutor, node: str
) -> Callable[[], Response]:
    def get_windows() -> Response:
        query = request.query_string.decode("latin-1")
        given = parameters(query, frozenset({lookup.parameter, SINCE, UNTIL}))
        item = _item(lookup, given.get(lookup.parameter))
        since, until = (_time(name, given.get(name)) for name in (SINCE, UNTIL))
        starts = lookup.window.starts_between(since, until)
        if len(starts) > MAX_WINDOWS:
            raise ProblemError(
                400,
                "range-too-long",
                f"From {since.isoformat()} to {until.isoformat()}, {len(starts):,} windows begin; at most {MAX_WINDOWS} are allowed: ask for less.",
            )
        keys = [lookup.window.key(item, start) for start in starts]
        # Once: a promotion in between must not mix two versions.
        version = records.live_version()
        found = tuple(pool.map(partial(records.texts, version=version), keys))
        windows = [
            "{" + ",".join(f"{dumps(name)}:{text}" for name, text in one.texts.items()) + "}"
            for one in found
            if one.texts
        ]
        age = AnswerAge.oldest(one.age for one in found)
        return Response(
            f"[{','.join(windows)}]",
            status=HTTPStatus.OK,
            content_type="application/json",
            headers=combined_headers(node, version, age),
        )

    return get_windows


def _item(lookup: WindowLookup, text: str | None) -> str:
    if not text or len(text.encode()) > lookup.max_item_bytes:
        raise ProblemError(
            400,
            "invalid-item",
            f"{lookup.parameter} is missing or too long: use {lookup.path}?{lookup.parameter}={quote(lookup.example)}"
            f"&{SINCE}=2026-03-02T08:00:00Z&{UNTIL}=2026-03-02T08:01:00Z.",
        )
    return text


def _time(name: str, text: str | None) -> datetime:
    """Return a time in UTC; raises ProblemError, also for one that is in the year 0 or 10000 there."""
    try:
        time = datetime.fromisoformat(text or "")
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ProblemError(
            400,
            f"invalid-{name}",
            f"{name} must be a time in ISO 8601 in the years 1 to 9999, such as 2026-03-02T08:00:00Z.",
        ) from error

"""The lookups as Flask has them: balances (whatever the hot path left), whole records, and what read models there are."""

from urllib.parse import quote

from flask import Blueprint, Response, request

from include.kafka.state_record import StateRecord
from include.nodes.peers import HOP_HEADER, PeerResponse
from query_api.http import balance_lookup
from query_api.http.answer_headers import headers_of, passed_on
from query_api.http.json_text import dumps
from query_api.http.problems import ProblemError
from query_api.lookup.local_lookup import LocalAnswer, LocalLookup
from query_api.lookup.lookup_failures import LookupFailedError
from query_api.lookup.lookups import Lookups
from query_api.lookup.position_bound import PositionBound
from query_api.metrics.node_metrics import LOOKUPS

BALANCE_PARAMETERS = frozenset({"customerId", "minOffset"})
RECORD_PARAMETERS = frozenset({"version", "minOffset"})
MAX_VERSION_DIGITS = 9


def reads_blueprint(lookups: Lookups) -> Blueprint:
    """Return the lookups as part of a Flask application."""
    blueprint = Blueprint("reads", __name__)

    @blueprint.get(balance_lookup.PATH)
    def get_balance() -> Response:
        given = balance_lookup.parameters(request.query_string.decode("latin-1"), BALANCE_PARAMETERS)
        key = balance_lookup.customer_key(given.get("customerId"))
        target = balance_lookup.target_of(given["customerId"], given.get("minOffset"))
        answer = _answer(lookups, balance_lookup.MODEL, key, None, given.get("minOffset"), target)
        if isinstance(answer, PeerResponse):
            return _from_peer(answer)
        return Response(balance_lookup.body_of(answer), headers=headers_of(answer))

    @blueprint.get("/api/read-models/<name>/records/<path:key>")
    def get_record(name: str, key: str) -> Response:
        given = balance_lookup.parameters(request.query_string.decode("latin-1"), RECORD_PARAMETERS)
        version = version_number(given.get("version"))
        query = "&".join(f"{k}={quote(v)}" for k, v in given.items() if v)
        target = f"/api/read-models/{quote(name, safe='')}/records/{quote(key, safe='')}?{query}"
        answer = _answer(lookups, name, key.encode(), version, given.get("minOffset"), target)
        if isinstance(answer, PeerResponse):
            return _from_peer(answer)
        return Response(_record_json(lookups.local, answer), headers=headers_of(answer))

    @blueprint.get("/api/read-models")
    def get_read_models() -> Response:
        return Response(dumps(_read_models(lookups.local)), content_type="application/json")

    return blueprint


def _answer(
    lookups: Lookups, model: str, key: bytes, version: int | None, min_offset: str | None, target: str
) -> LocalAnswer | PeerResponse:
    try:
        bound = PositionBound.parse(min_offset)
    except ValueError as error:
        raise ProblemError(400, "invalid-bound", str(error)) from error
    try:
        place = lookups.local.place(model, key, version)
        answer = lookups.answer(place, target, request.headers.get(HOP_HEADER), bound)
    except LookupFailedError as error:
        LOOKUPS.labels(error.reason.slug, "local").inc()
        raise
    LOOKUPS.labels("ok", "peer" if isinstance(answer, PeerResponse) else "local").inc()
    return answer


def _from_peer(response: PeerResponse) -> Response:
    return Response(response.body, status=response.status, headers=passed_on(response.headers))


def version_number(text: str | None) -> int | None:
    """Read the parameter `version`; raises ProblemError."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_VERSION_DIGITS):
        raise ProblemError(400, "invalid-version", f"version must be a whole number; it is {text[:40]!r}.")
    return int(text)


def _record_json(local: LocalLookup, answer: LocalAnswer) -> str:
    record = local.decode(answer)
    return dumps(
        {
            "read_model": answer.place.model.name,
            "version": answer.place.version,
            **record_fields(answer.place.key, record),
        }
    )


def record_fields(key: bytes, record: StateRecord) -> dict[str, object]:
    """Return a key's state record as JSON has it."""
    return {
        "key": key.decode(),
        "state": record.state,
        **record.position.record_fields(),
        "occurred_on": record.occurred_on,
    }


def _read_models(local: LocalLookup) -> list[dict[str, object]]:
    state = local.state()
    models = [] if state is None else list(state.models.values())
    return [
        {
            "name": model.name,
            "source_topic": model.source_topic,
            "partitions": model.partition_count,
            "revision": model.revision,
            "live": model.live,
            "versions": [
                {
                    "version": version.number,
                    "stage": version.stage,
                    "changelog_topic": version.changelog_topic,
                    "records_held_here": version.records,
                }
                for version in model.versions.values()
            ],
        }
        for model in models
    ]

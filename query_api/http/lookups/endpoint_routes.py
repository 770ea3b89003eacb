"""The declared endpoints that make an answer of several records: each record is looked up on its own node."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from flask import Blueprint, Response, request

from include.declarations.api import DECIMALS_PARAMETER
from include.declarations.kinds.endpoint import (
    INVALID_PARAMETER,
    MAX_RECORDS,
    Endpoint,
    InvalidParameterError,
)
from include.declarations.read_model import ReadModel
from include.kafka.wire_format import key_fault
from include.observability.request_context import in_this_request
from query_api.http.answers import combined_headers
from query_api.http.lookups.record_texts import RecordTexts
from query_api.http.problem_kinds import is_kind
from query_api.http.problems import ProblemError
from query_api.http.request_parameters import has_text_decimals, parameters
from query_api.lookup.lookup_results import AnswerAge
from query_api.lookup.lookups import Lookups

THREADS = 8


def endpoint_blueprint(lookups: Lookups, declared: Iterable[tuple[ReadModel, Endpoint]]) -> Blueprint:
    """Return the endpoints of the read models as a Flask blueprint."""
    blueprint = Blueprint("endpoints", __name__)
    # Lookups on other nodes wait for answers, not for a processor.
    pool = ThreadPoolExecutor(THREADS, "endpoints")
    for model, endpoint in declared:
        # Whether decimals are strings -> the records.
        records = {
            text_decimals: RecordTexts(lookups, model, endpoint.fields, text_decimals=text_decimals)
            for text_decimals in (False, True)
        }
        # Flask reserves the dot in endpoint names for blueprints.
        name = endpoint.path.replace(".", ":")
        blueprint.add_url_rule(endpoint.path, name, _view(endpoint, records, pool, lookups))
    return blueprint


def _view(
    endpoint: Endpoint, of_form: Mapping[bool, RecordTexts], pool: ThreadPoolExecutor, lookups: Lookups
) -> Callable[[], Response]:
    allowed = frozenset({*endpoint.parameters, DECIMALS_PARAMETER})
    max_key_bytes = lookups.local.max_key_bytes

    def get() -> Response:
        given = parameters(request.query_string.decode("latin-1"), allowed)
        records = of_form[has_text_decimals(given)]
        given.pop(DECIMALS_PARAMETER, None)
        try:
            keys = endpoint.keys(given)
        except InvalidParameterError as error:
            # A slug of the kind's own, which no page describes.
            slug = error.slug if is_kind(error.slug, 400) else INVALID_PARAMETER
            raise ProblemError(400, slug, str(error)) from error
        if len(keys) > MAX_RECORDS:
            detail = f"The request has {len(keys):,} keys; at most {MAX_RECORDS} are allowed: ask for less."
            raise ProblemError(400, "too-many-keys", detail)
        for key in keys:
            if fault := key_fault(key, max_key_bytes):
                raise ProblemError(400, "invalid-key", f"The key {key.decode(errors='replace')!r} {fault}.")
        # Once: a promotion in between must not mix two versions.
        version = records.live_version()
        found = tuple(pool.map(in_this_request(partial(records.texts, version=version)), keys))
        return Response(
            endpoint.answer([one.texts for one in found]),
            content_type="application/json",
            headers=combined_headers(
                lookups.local.node_name, version, AnswerAge.oldest(one.age for one in found)
            ),
        )

    return get

"""The lookups behind Flask, and the list of read models."""

from collections.abc import Callable

from flask import Blueprint, Response, request

from include.nodes.peers import HOP_HEADER, SERVED_HEADER, Hop, ServedOffset
from query_api.http.answers import Reply, flask_response
from query_api.http.delivery.conditional import for_condition
from query_api.http.delivery.field_names import document_response, names_headers, requested_names
from query_api.http.limits.rate_limit import client_of
from query_api.http.lookups.named_lookups import CompiledLookup
from query_api.http.lookups.router import LookupRouter
from query_api.http.request_parameters import KeyConverter
from query_api.lookup.local_lookup import LocalLookup


def lookup_blueprint(router: LookupRouter, local: LocalLookup) -> Blueprint:
    """Return the lookups as a Flask blueprint."""
    blueprint = Blueprint("reads", __name__)
    # Before the rule that uses it. Converters belong to the application.
    blueprint.record(lambda setup: setup.app.url_map.converters.update(key=KeyConverter))
    for lookup in router.named.values():
        blueprint.add_url_rule(lookup.path, _endpoint(lookup.path), _named_view(router, lookup))

    @blueprint.get("/api/read-models/<name>/records/<key:key>")
    def get_record(name: str, key: str) -> Response:
        return record_reply(router, name, key)

    @blueprint.get("/api/read-models")
    def get_read_models() -> Response:
        return document_response(_read_models(local), request)

    return blueprint


def record_reply(router: LookupRouter, read_model: str, key: str | None) -> Response:
    """Answer the current request for a record. key: from the path; None if it is in the query."""
    style = requested_names(request)
    response = _conditional(router.record(read_model, key, _query(), _hop(), _client(), style))
    response.headers.extend(names_headers(style, request))
    return response


def _named_view(router: LookupRouter, lookup: CompiledLookup) -> Callable[[], Response]:
    def get_by_name() -> Response:
        return _conditional(router.by_name(lookup, _query(), _hop(), _client()))

    return get_by_name


def _conditional(reply: Reply) -> Response:
    return flask_response(for_condition(reply, request.headers.get("If-None-Match")))


def _endpoint(path: str) -> str:
    # Flask reserves the dot in endpoint names for blueprints.
    return path.replace(".", ":")


def _hop() -> Hop | None:
    rule = request.headers.get(HOP_HEADER)
    return None if rule is None else Hop(rule, ServedOffset.parse(request.headers.get(SERVED_HEADER)))


def _query() -> str:
    return request.query_string.decode("latin-1")


def _client() -> str:
    return client_of(request.environ)


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
                    "source_topic": version.source_topic,
                    "changelog_topic": version.changelog_topic,
                    "records_held_here": version.records,
                }
                for version in model.versions.values()
            ],
        }
        for model in models
    ]

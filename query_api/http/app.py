"""The HTTP API of a query node: a Flask application. The fast path in front of it is in wsgi.py."""

import logging
from functools import partial

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from include.access.audit import AuditLog
from include.declarations.catalog import Catalog
from include.observability.request_context import ROUTE_KEY
from include.settings import Settings
from query_api.access.credentials import Credentials
from query_api.changes.change_feeds import ChangeFeeds
from query_api.http.access.sign_in import sign_in_blueprint
from query_api.http.answers import flask_response
from query_api.http.changes.change_routes import ChangeStreams, changes_blueprint
from query_api.http.commands.command_routes import commands_blueprint
from query_api.http.contract.contract_routes import contract_blueprint
from query_api.http.delivery.compression import compress
from query_api.http.delivery.cross_origin import share
from query_api.http.explain.explain_routes import explain_blueprint
from query_api.http.explain.explanations import Explanations
from query_api.http.health_routes import health_blueprint
from query_api.http.listing_routes import ModelListing, listing_blueprint
from query_api.http.lookups.endpoint_routes import endpoint_blueprint
from query_api.http.lookups.router import LookupRouter
from query_api.http.lookups.routes import lookup_blueprint, record_reply
from query_api.http.map.map_routes import map_blueprint
from query_api.http.pages.pages import for_client, origins_of
from query_api.http.problems import MEDIA_TYPE, ProblemError, http_problem, lookup_problem, problem_reply
from query_api.http.report_routes import CHANGES, QUALITY, reports_blueprint
from query_api.http.request_checks import AllowedHosts, check_request
from query_api.http.request_parameters import Areas
from query_api.http.status.status_routes import status_blueprint
from query_api.lookup.client_slots import ClientSlots
from query_api.lookup.lookup_results import LookupFailedError
from query_api.lookup.lookups import Lookups
from query_api.status.node_view import NodeView

log = logging.getLogger(__name__)


def create_app(
    settings: Settings,
    hosts: AllowedHosts,
    lookups: Lookups,
    router: LookupRouter,
    catalog: Catalog,
    feeds: ChangeFeeds,
    credentials: Credentials | None = None,
) -> Flask:
    """Return the Flask application: every endpoint, and every error as problem details, or as a page for a browser.

    credentials: find the callers, on a node with authentication.
    """
    app = Flask("foldlake", static_folder=None)
    # A key may contain any characters, consecutive slashes included.
    app.url_map.merge_slashes = False
    if settings.traces.is_on:
        app.before_request(_note_route)
    app.before_request(lambda: check_request(request.environ, hosts))
    app.register_blueprint(lookup_blueprint(router, lookups.local))
    app.register_blueprint(endpoint_blueprint(lookups, catalog.endpoints))
    apis = catalog.apis
    areas, listing = Areas(apis), ModelListing(lookups)
    look_up = partial(record_reply, router, key=None)
    slots = ClientSlots(settings.node.http_streams, settings.node.max_client_share)
    app.register_blueprint(listing_blueprint(lookups, listing, areas, look_up, slots))
    streams = ChangeStreams(lookups.local, listing.pages, feeds, areas, slots)
    app.register_blueprint(changes_blueprint(streams, lambda: feeds.is_stopped))
    app.register_blueprint(map_blueprint(settings.node.name, areas))
    app.register_blueprint(commands_blueprint(settings, apis))
    models = {api.model.name: api.model for api in apis}
    # Airflow shows the status page in a frame, and what it links to.
    framed_by = ("'self'", *origins_of(settings.airflow.pages_url))
    explanations = Explanations(settings)
    app.register_blueprint(explain_blueprint(settings.node.name, models, explanations, framed_by))
    app.register_blueprint(health_blueprint(settings, lookups))
    app.register_blueprint(contract_blueprint(settings.node.name, catalog, is_secured=settings.auth.is_on))
    for kind in (QUALITY, CHANGES):
        app.register_blueprint(reports_blueprint(settings.home / "reports" / kind.name, kind))
    view = NodeView(settings, lookups, catalog)
    app.register_blueprint(status_blueprint(view, apis, framed_by))
    if credentials is not None:
        audit = AuditLog(settings.home, settings.node.name)
        app.register_blueprint(sign_in_blueprint(credentials, audit, settings.node.http_body_timeout_s))
    # Flask calls them in reverse order: an error is a page before it is compressed.
    app.after_request(lambda response: share(response, request, hosts.origins))
    app.after_request(lambda response: compress(response, request))
    _register_errors(app, settings.node.name)
    return app


def _note_route() -> None:
    if request.url_rule is not None:
        request.environ[ROUTE_KEY] = request.url_rule.rule


def _register_errors(app: Flask, node_name: str) -> None:
    @app.after_request
    def as_page(response: Response) -> Response:
        if response.mimetype != MEDIA_TYPE:
            return response
        reply = response.status_code, list(response.headers), response.get_data()
        return flask_response(
            for_client(reply, request.headers.get("Accept", ""), request.full_path.rstrip("?"))
        )

    @app.errorhandler(ProblemError)
    def on_problem(problem: ProblemError) -> Response:
        return flask_response(problem_reply(problem))

    @app.errorhandler(LookupFailedError)
    def on_lookup_failed(error: LookupFailedError) -> Response:
        return flask_response(lookup_problem(error, node_name))

    @app.errorhandler(HTTPException)
    def on_http_error(error: HTTPException) -> Response:
        response = flask_response(http_problem(error.code or 500, error.description or ""))
        allowed = getattr(error, "valid_methods", None)
        if allowed:
            response.headers["Allow"] = ", ".join(sorted(allowed))
        return response

    @app.errorhandler(Exception)
    def on_error(error: Exception) -> Response:
        log.error("a request failed", exc_info=error)
        return flask_response(http_problem(500, "Internal error: see the node's log for the traceback."))

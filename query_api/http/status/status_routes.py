"""The status page at `/`, the same as JSON at `/api/status`, and parts of it as metrics, from any node. Its parts are in query_api/status/."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from flask import Blueprint, Response, render_template_string, request

from include.declarations.api import ReadModelApi
from query_api.http.answers import metrics_response
from query_api.http.contract.parameters import OF_STATUS, names
from query_api.http.delivery.field_names import document_response
from query_api.http.pages.pages import HTML, PAGE_STYLE, files_blueprint, page_headers
from query_api.http.problems import ProblemError
from query_api.http.request_parameters import parameters
from query_api.metrics.status_metrics import SECTIONS, status_exposition
from query_api.status.node_view import NodeView
from query_api.status.sections import StatusDocument, sources

FOLDER = Path(__file__).parent
FILES = {
    **{
        name: FOLDER / name
        for name in (
            "status.js",
            "sections.js",
            "flows.js",
            "plots.js",
            "lookup.js",
            "words.js",
            "status.css",
        )
    },
    "lit-html.js": FOLDER / "vendor" / "lit-html" / "lit-html.js",
    "lit-html.LICENSE.txt": FOLDER / "vendor" / "lit-html" / "LICENSE.txt",
    "uPlot.iife.min.js": FOLDER / "vendor" / "uplot" / "uPlot.iife.min.js",
    "uPlot.min.css": FOLDER / "vendor" / "uplot" / "uPlot.min.css",
    "uPlot.LICENSE.txt": FOLDER / "vendor" / "uplot" / "LICENSE.txt",
}
STATUS_PATH = "/api/status"
PARAMETERS = names(OF_STATUS)


def status_blueprint(
    view: NodeView, apis: Sequence[ReadModelApi], frame_ancestors: Iterable[str]
) -> Blueprint:
    """Return the page, its files and its JSON as a Flask blueprint; `frame_ancestors` are the origins whose pages may contain it."""
    settings = view.settings
    blueprint = Blueprint("status", __name__)
    blueprint.register_blueprint(files_blueprint("status-files", "/status-files", FILES))
    blueprint.register_blueprint(files_blueprint("page-files", "/page-files", PAGE_STYLE))
    page = (FOLDER / "status.html").read_text(encoding="utf-8")
    headers = page_headers(frame_ancestors)
    node = {"node": settings.node.name, "url": settings.advertised_url}
    document = StatusDocument(node, sources(view), _folder(settings.store_dir))

    @blueprint.get("/")
    def get_page() -> Response:
        text = render_template_string(page, node=settings.node.name, apis=apis, to_json=json.dumps)
        return Response(text, content_type=HTML, headers=headers)

    @blueprint.get(STATUS_PATH)
    def get_status() -> Response:
        given = parameters(request.query_string.decode("latin-1"), PARAMETERS)
        names = given["sections"].split(",") if "sections" in given else document.names
        unknown = sorted(set(names) - set(document.names))
        if unknown:
            detail = f"Unknown: {', '.join(unknown)[:200]}; allowed: {', '.join(document.names)}."
            raise ProblemError(400, "unknown-section", detail)
        return document_response(document.read(names), request)

    @blueprint.get("/metrics/status")
    def get_metrics() -> Response:
        return metrics_response(status_exposition(document.read(SECTIONS)["sections"]))

    return blueprint


def _folder(store_dir: Path) -> Path:
    """Return the folder in memory that the node's workers share, which their server creates and removes; without a server, one on disk."""
    shared = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    folder = (Path(shared) if shared else store_dir) / "status"
    folder.mkdir(parents=True, exist_ok=True)
    return folder

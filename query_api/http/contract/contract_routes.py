"""The contract over HTTP: the OpenAPI document, its reference page, and a page for each kind of problem."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, abort, request
from jinja2 import Environment
from markupsafe import Markup

from include.declarations.catalog import Catalog
from include.html_pages import page_templates
from query_api.http.answers import CONTENT_TYPE
from query_api.http.contract.document import openapi_document
from query_api.http.delivery.field_names import document_response
from query_api.http.json_text import dumps
from query_api.http.pages.pages import CACHE_CONTROL, HTML, files_blueprint, page_headers, wants_page
from query_api.http.problem_kinds import KINDS, PAGE_PREFIX, ProblemKind, kind_of
from query_api.http.problems import TYPE_PREFIX

FOLDER = Path(__file__).parent
VENDORED = FOLDER / "vendor" / "swagger-ui"
FILES = {
    "docs.js": FOLDER / "docs.js",
    "docs.css": FOLDER / "docs.css",
    "swagger-ui-bundle.js": VENDORED / "swagger-ui-bundle.js",
    "swagger-ui.css": VENDORED / "swagger-ui.css",
    "swagger-ui.LICENSE.txt": VENDORED / "LICENSE.txt",
    "swagger-ui.NOTICE.txt": VENDORED / "NOTICE.txt",
}
DOCUMENT_PATH = "/openapi.json"
DOCS_PATH = "/docs"


def contract_blueprint(node_name: str, catalog: Catalog, *, is_secured: bool = False) -> Blueprint:
    """Return the contract as a Flask blueprint. is_secured: whether callers need credentials."""
    blueprint = Blueprint("contract", __name__)
    blueprint.register_blueprint(files_blueprint("docs-files", "/docs-files", FILES))

    @cache
    def document() -> tuple[bytes, str]:
        body = dumps(openapi_document(catalog, is_secured=is_secured)).encode()
        return body, hashlib.sha256(body).hexdigest()[:16]

    @blueprint.get(DOCUMENT_PATH)
    def get_document() -> Response:
        body, tag = document()
        response = Response(body, headers=dict([CONTENT_TYPE, ("Cache-Control", CACHE_CONTROL)]))
        response.set_etag(tag)
        response.make_conditional(request)
        return response

    @blueprint.get(DOCS_PATH)
    def get_docs() -> Response:
        page = _templates().get_template("docs.html").render(node=node_name)
        return Response(page, content_type=HTML, headers=page_headers())

    @blueprint.get(PAGE_PREFIX.rstrip("/"))
    def list_problems() -> Response:
        return _page_or_json([about(kind) for kind in KINDS], kinds=[_listed(kind) for kind in KINDS])

    @blueprint.get(f"{PAGE_PREFIX}<slug>")
    def get_problem(slug: str) -> Response:
        kind = kind_of(slug)
        if kind is None:
            abort(404, f"There is no such problem: {PAGE_PREFIX.rstrip('/')} lists all.")
        return _page_or_json({**about(kind), "slug": slug, "type": TYPE_PREFIX + slug}, kind=kind, slug=slug)

    return blueprint


def about(kind: ProblemKind) -> dict[str, Any]:
    """Return a kind of problem as a JSON object."""
    return {
        "slug": kind.slug,
        "type": TYPE_PREFIX + kind.slug,
        "statuses": list(kind.statuses),
        "meaning": kind.meaning,
        "remedy": kind.remedy,
        "may_retry": kind.may_retry,
    }


def _listed(kind: ProblemKind) -> dict[str, Any]:
    return {**about(kind), "example": kind.slug.replace("{", "").replace("}", "")}


def _page_or_json(value: object, **shown: object) -> Response:
    vary = {"Vary": "Accept", "Cache-Control": CACHE_CONTROL}
    if not wants_page(request.headers.get("Accept", "")):
        return document_response(value, request, vary.items())
    page = _templates().get_template("problems.html").render(prefix=TYPE_PREFIX, **shown)
    return Response(page, content_type=HTML, headers={**page_headers(), **vary})


def marked_up(text: str) -> Markup:
    """Return a text as HTML, with what is between backticks as code."""
    parts = [Markup.escape(part) for part in text.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else part for number, part in enumerate(parts)
    )


@cache
def _templates() -> Environment:
    environment = page_templates(FOLDER)
    environment.filters["marked_up"] = marked_up
    return environment

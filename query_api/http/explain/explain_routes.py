"""The page at `/explain`: the events behind the state of a key, for people as HTML, for programs as JSON."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path

from flask import Blueprint, Response, render_template_string, request

from include.declarations.read_model import ReadModel
from include.versions.explanation import Explanation, NotExplainedError, field_texts, steps
from include.words import plural
from query_api.http.contract.parameters import OF_EXPLANATION, names
from query_api.http.delivery.field_names import document_response
from query_api.http.explain.explanations import ExplainRequest, Explanations, Pending
from query_api.http.lookups.router import version_number
from query_api.http.pages.pages import wants_page
from query_api.http.problems import ProblemError
from query_api.http.request_parameters import parameters, require_key

PATH = "/explain"
PARAMETERS = names(OF_EXPLANATION)
RETRY_AFTER_S = 1
# The longest key that any store has.
MAX_STORED_KEY_BYTES = 4096
PAGE = (Path(__file__).parent / "explain.html").read_text(encoding="utf-8")
# The page has no script: while the job runs, it reloads itself.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors "
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def explain_blueprint(
    node_name: str,
    models: Mapping[str, ReadModel],
    explanations: Explanations,
    frame_ancestors: Iterable[str],
) -> Blueprint:
    """Return the page as a Flask blueprint; `frame_ancestors` are the origins whose pages may contain it."""
    blueprint = Blueprint("explain", __name__)
    headers = {**HEADERS, "Content-Security-Policy": POLICY + " ".join(frame_ancestors)}

    @blueprint.get(PATH)
    def explain() -> Response:
        _require_own_page()
        given = parameters(request.query_string.decode("latin-1"), PARAMETERS)
        if not _wants_html():
            return _json(_find(given))
        found: Explanation | Pending | None = None
        problem: ProblemError | None = None
        try:
            if given.get("readModel") or given.get("key"):
                found = _find(given)
        except ProblemError as error:
            problem = error
        status = problem.status if problem else 202 if isinstance(found, Pending) else 200
        page = render_template_string(
            PAGE,
            plural=plural,
            node=node_name,
            models=sorted(models),
            given=given,
            problem=problem,
            pending=found if isinstance(found, Pending) else None,
            found=found if isinstance(found, Explanation) else None,
            steps=steps(found) if isinstance(found, Explanation) else (),
            field_texts=field_texts,
        )
        return Response(page, status, {**headers, "Content-Type": "text/html; charset=utf-8"})

    def _find(given: dict[str, str]) -> Explanation | Pending:
        try:
            return explanations.find(_request(given, models))
        except NotExplainedError as error:
            raise ProblemError(422, "not-explained", str(error)) from error

    return blueprint


def _require_own_page() -> None:
    """Raise ProblemError for a request that another site's page makes in the background: each may start a job."""
    is_foreign = request.headers.get("Sec-Fetch-Site") == "cross-site"
    if is_foreign and request.headers.get("Sec-Fetch-Mode") != "navigate":
        raise ProblemError(
            403, "foreign-origin", "Another site's page may link to this page, and not load it."
        )


def _wants_html() -> bool:
    return wants_page(request.headers.get("Accept", ""))


def _request(given: dict[str, str], models: Mapping[str, ReadModel]) -> ExplainRequest:
    for name in ("readModel", "key"):
        if not given.get(name):
            slug = "missing-read-model" if name == "readModel" else "missing-key"
            raise ProblemError(400, slug, f"{name} is missing: use {PATH}?readModel=...&key=...")
    model = models.get(given["readModel"])
    if model is None:
        raise ProblemError(
            404,
            "unknown-model",
            f"There is no read model {given['readModel']!r}. Known read models: {', '.join(sorted(models))}.",
        )
    require_key("key", given["key"], MAX_STORED_KEY_BYTES)
    version = version_number(given.get("version") or None)
    if version == 0:
        raise ProblemError(400, "invalid-version", "version is 0: give a number from 1.")
    return ExplainRequest(model, given["key"], version)


def _json(found: Explanation | Pending) -> Response:
    if isinstance(found, Explanation):
        return document_response(found.document(), request, HEADERS.items())
    body = {
        "status": "queued" if found.since_s is None else "running",
        "running_for_s": found.since_s,
        "detail": "The log is being read: ask again until the status is 200.",
    }
    headers = {**HEADERS, "Retry-After": str(RETRY_AFTER_S)}
    return document_response(body, request, headers.items(), HTTPStatus.ACCEPTED)

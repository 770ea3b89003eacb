"""Every error answer: RFC 9457 problem details."""

from http import HTTPStatus

from flask import Response

from include.nodes.peers import REASON_HEADER
from query_api.http.json_text import dumps
from query_api.lookup.lookup_failures import LookupFailedError

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:foldlake:problem:"


class ProblemError(Exception):
    """An answer that is an error.

    slug: names the kind of problem, stable for programs.
    detail: what is wrong with this request, for people.
    extra: further members of the problem's JSON.
    """

    def __init__(
        self, status: int, slug: str, detail: str, *, retry_after_s: int | None = None, **extra: object
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.slug = slug
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.extra = extra
        self.title = slug.replace("-", " ")


def problem_response(problem: ProblemError) -> Response:
    """Return the problem as HTTP has it."""
    body = {
        "type": TYPE_PREFIX + problem.slug,
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        **problem.extra,
    }
    response = Response(dumps(body) + "\n", status=problem.status, content_type=MEDIA_TYPE)
    if problem.retry_after_s is not None:
        response.headers["Retry-After"] = str(problem.retry_after_s)
    return response


def lookup_problem(error: LookupFailedError, node_name: str) -> Response:
    """Return a failed lookup as HTTP has it, with what the caller should do."""
    meaning = error.reason.value
    problem = ProblemError(
        meaning.status,
        error.reason.slug,
        error.detail,
        retry_after_s=meaning.retry_after_s,
        advice=meaning.advice,
    )
    problem.title = meaning.title
    response = problem_response(problem)
    response.headers[REASON_HEADER] = error.reason.slug
    response.headers["Foldlake-Node"] = node_name
    return response


def http_problem(status: int, detail: str) -> Response:
    """Return an error of HTTP itself (no such path, method not allowed, ...)."""
    phrase = HTTPStatus(status).phrase
    return problem_response(ProblemError(status, phrase.lower().replace(" ", "-").replace("'", ""), detail))

"""Every error answer: RFC 9457 problem details."""

from http import HTTPStatus

from include.nodes.peers import REASON_HEADER
from query_api.http.answers import CACHE_CONTROL, NODE_HEADER, Reply, age_headers
from query_api.http.json_text import dumps
from query_api.lookup.lookup_results import LookupFailedError

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:foldlake:problem:"


class ProblemError(Exception):
    """An error response.

    slug: identifies the kind of problem; stable, for programs.
    detail: describes this occurrence, for people.
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


def problem_reply(problem: ProblemError) -> Reply:
    """Return the HTTP reply for a problem."""
    body = {
        "type": TYPE_PREFIX + problem.slug,
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        **problem.extra,
    }
    # Without it, caches may keep a 404, a 405 or a 410 for as long as they like (RFC 9110, section 15.1).
    headers = [("Content-Type", MEDIA_TYPE), CACHE_CONTROL]
    if problem.retry_after_s is not None:
        headers.append(("Retry-After", str(problem.retry_after_s)))
    return problem.status, headers, (dumps(body) + "\n").encode()


def lookup_problem(error: LookupFailedError, node_name: str) -> Reply:
    """Return the HTTP reply for a failed lookup, with advice for the caller."""
    meaning = error.reason.value
    problem = ProblemError(
        meaning.status,
        error.reason.slug,
        error.detail,
        retry_after_s=meaning.retry_after_s,
        advice=meaning.advice,
    )
    problem.title = meaning.title
    status, headers, body = problem_reply(problem)
    headers += [(REASON_HEADER, error.reason.slug), (NODE_HEADER, node_name)]
    if error.partition is not None:
        headers += age_headers(error.partition)
    return status, headers, body


def http_problem(status: int, detail: str) -> Reply:
    """Return the reply for an error of HTTP itself (not found, method not allowed, ...)."""
    phrase = HTTPStatus(status).phrase
    return problem_reply(ProblemError(status, phrase.lower().replace(" ", "-").replace("'", ""), detail))

"""Every error answer: RFC 9457 problem details."""

from http import HTTPStatus

from include.nodes.peers import REASON_HEADER
from include.observability.request_context import request_id
from query_api.http.answers import CACHE_CONTROL, NODE_HEADER, Reply, age_headers
from query_api.http.json_text import dumps
from query_api.http.problem_kinds import is_kind, page_of
from query_api.lookup.client_slots import NoFreeSlotError
from query_api.lookup.lookup_results import LookupFailedError

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:foldlake:problem:"
# Of HTTP errors that have no kind of their own.
HTTP_ERROR = "http-error"


class ProblemError(Exception):
    """An error response.

    slug: identifies the kind of problem; stable, for programs. It must be in `problem_kinds.py`, with this status.
    detail: describes this occurrence, for people.
    extra: further members of the problem's JSON.
    """

    def __init__(
        self, status: int, slug: str, detail: str, *, retry_after_s: int | None = None, **extra: object
    ) -> None:
        super().__init__(detail)
        if not is_kind(slug, status):
            message = f"a problem {slug} with status {status} is not in problem_kinds.py"
            raise ValueError(message)
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
        "page": page_of(problem.slug),
        **problem.extra,
    }
    if known := request_id():
        body["requestId"] = known
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


def busy_problem(error: NoFreeSlotError, slug: str, retry_after_s: int, *, outcome: str = "") -> ProblemError:
    """Return the problem of a request without a slot. outcome: a sentence."""
    return ProblemError(429, slug, f"{error}.{outcome}", retry_after_s=retry_after_s)


def http_problem(status: int, detail: str) -> Reply:
    """Return the reply for an error of HTTP itself (not found, method not allowed, ...)."""
    slug = HTTPStatus(status).phrase.lower().replace(" ", "-").replace("'", "")
    return problem_reply(ProblemError(status, slug if is_kind(slug, status) else HTTP_ERROR, detail))

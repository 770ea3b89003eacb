"""Every kind of problem that a node can return: its slug, its statuses, what it means and what a caller can do.

A problem of any other kind cannot be created. The pages at `/problems/` and the contract at `/openapi.json` are made of this list.
"""

import re
from dataclasses import dataclass
from itertools import chain

from query_api.lookup.lookup_results import FailureReason

# Stands for the name of a parameter, in lower case with dashes: `order-id` for `orderId`.
PARAMETER = "{parameter}"
PARAMETER_TEXT = "[a-z0-9]+(?:-[a-z0-9]+)*"
PAGE_PREFIX = "/problems/"


@dataclass(frozen=True)
class ProblemKind:
    """A kind of problem. slug: identifies it, for programs; with `{parameter}` in it, a family of kinds, one for each parameter.

    statuses: those that it can have; any if empty.
    meaning: why the request failed. remedy: what the caller can do. may_retry: whether the same request can succeed later.
    """

    slug: str
    statuses: tuple[int, ...]
    meaning: str
    remedy: str
    may_retry: bool = False

    @property
    def is_family(self) -> bool:
        """Whether it is one kind for each parameter."""
        return PARAMETER in self.slug

    def matches(self, slug: str) -> bool:
        """Whether a problem with this slug is of this kind."""
        pattern = re.escape(self.slug).replace(re.escape(PARAMETER), PARAMETER_TEXT)
        return re.fullmatch(pattern, slug) is not None


def _kind(
    slug: str, status: int | tuple[int, ...], meaning: str, remedy: str, *, may_retry: bool = False
) -> ProblemKind:
    statuses = status if isinstance(status, tuple) else (status,)
    return ProblemKind(slug, statuses, meaning, remedy, may_retry)


_LOOKUPS = tuple(
    _kind(
        reason.slug,
        reason.value.status,
        meaning,
        reason.value.advice,
        may_retry=reason.value.retry_after_s is not None,
    )
    for reason, meaning in {
        FailureReason.NOT_OWNER: "The node does not store the partition.",
        FailureReason.NOT_READY: "The node, or every node that has the partition, is still loading it or is unavailable.",
        FailureReason.NOT_UP_TO_BOUND: "The event at `minOffset` was not folded within a second, or too many lookups wait.",
        FailureReason.UNKNOWN_MODEL: "There is no such read model, or no such active version of it.",
        FailureReason.UNKNOWN_KEY: (
            "No event of this key was folded, the item has ended, or its state cannot be written."
        ),
    }.items()
)
_PARAMETERS = (
    _kind("unknown-parameter", 400, "The path has no such query parameter.", "Remove the parameter: `detail` lists those that are allowed."),
    _kind("repeated-parameter", 400, "A query parameter is given twice.", "Give each parameter once."),
    _kind("invalid-query", 400, "The query is not UTF-8 in percent encoding.", "Encode the query: write `%25` for a percent sign."),
    _kind("invalid-path", 400, "The path is not UTF-8 in percent encoding.", "Encode the path."),
    _kind("invalid-parameter", 400, "A parameter of a declared lookup is not valid.", "Correct the parameter that `detail` names."),
    _kind("missing-{parameter}", 400, "A required parameter is missing.", "Add the parameter that `detail` names."),
    _kind("{parameter}-too-long", 400, "A parameter has more bytes than allowed.", "Shorten the value."),
    _kind("invalid-{parameter}", 400, "The value of a parameter is not valid.", "Correct the value: `detail` describes the valid ones."),
    _kind("bound-of-another-topic", 400, "The read model folds its events under another key, so an event's offset is no bound.", "Omit `minOffset`; `eventCount` of the record says how many events it contains."),
    _kind("range-too-long", 400, "More windows begin in the range than a lookup returns.", "Request a shorter range."),
    _kind("too-many-keys", 400, "The request needs more records than a lookup reads.", "Split the request."),
    _kind("no-location", 400, "The read model does not declare where its items are.", "Omit `within`."),
    _kind("key-and-prefix", 400, "Both `key` and `prefix` are given.", "Give one of them."),
    _kind("unknown-section", 400, "The status has no such section.", "Use the sections that `detail` lists."),
)  # fmt: skip
_COMMANDS = (
    _kind("not-json", 400, "The body is not a JSON object in UTF-8. Nothing was written.", "Send a JSON object."),
    _kind("invalid-command", 400, "Fields of the command are not valid. Nothing was written.", "Correct the fields that `errors` lists."),
    _kind("incomplete-body", 400, "The body is shorter than `Content-Length`. Nothing was written.", "Send the whole body.", may_retry=True),
    _kind("transfer-encoding", 400, "The body is sent in chunks. Nothing was written.", "Send the body with `Content-Length`."),
    _kind("body-timeout", 408, "The body was not complete in time. Nothing was written.", "Send the request again.", may_retry=True),
    _kind("length-required", 411, "The request has no `Content-Length`. Nothing was written.", "Add `Content-Length`."),
    _kind("body-too-large", 413, "The body is too large. Nothing was written.", "Send a shorter body."),
    _kind("unsupported-media-type", 415, "The body is not said to be JSON in UTF-8. Nothing was written.", "Send `Content-Type: application/json`, and no `Content-Encoding`."),
    _kind("too-many-commands", 429, "The caller or the node has too many commands in progress. Nothing was written.", "Repeat the command after `Retry-After`.", may_retry=True),
    _kind("log-unavailable", 503, "Kafka or the schema registry does not answer. Nothing was written.", "Repeat the request after `Retry-After`.", may_retry=True),
    _kind("schema-refused", 500, "The schema registry rejects the schema of the command's event. Nothing was written.", "Correct the schema: repeating the command does not help."),
    _kind("outcome-unknown", 504, "Kafka did not acknowledge the event: it may have been written, or may still be.", "Look for the event with the `id` before you send the command again."),
)  # fmt: skip
_STREAMS = (
    _kind("position-gone", 410, "Changes after the position may be missing.", "Begin again without a position, or with `snapshot=true`."),
    _kind("too-many-streams", 429, "The caller or the node has too many streams open.", "Close a stream, or retry after `Retry-After`.", may_retry=True),
    _kind("too-many-requests", 429, "The caller or the node has too many of these requests in progress.", "Retry after `Retry-After`.", may_retry=True),
    _kind("not-explained", 422, "The state of the key cannot be explained.", "`detail` has the reason."),
)  # fmt: skip
_HTTP = (
    _kind("ambiguous-length", 400, "The request has both `Content-Length` and `Transfer-Encoding`.", "Send only `Content-Length`."),
    _kind("bad-request", 400, "The request is not valid HTTP.", "Correct the request."),
    _kind("foreign-host", 403, "The header `Host` names no host of the node.", "Use the node's URL, or add the host to `FOLDLAKE_NODE_ALLOWED_HOSTS`."),
    _kind("foreign-origin", 403, "The request comes from a page of another origin.", "Call the node from a page of its own, or from a server."),
    _kind("unauthenticated", 401, "The node requires credentials, and the request has none that are valid.", "Send an API key or a token as `Authorization: Bearer …`."),
    _kind("missing-scope", 403, "The caller does not have the scope that the request needs.", "Use a key or a token with the scope that `detail` names."),
    _kind("read-model-not-allowed", 403, "The caller's key or token is limited to other read models.", "Use a key or a token for this read model."),
    _kind("invalid-form", 400, "The form of the sign-in page has too many fields, or is too long.", "Send the form of `/sign-in`."),
    _kind("rate-limited", 429, "The caller has used its quota of requests.", "Send the next request after `Retry-After`; the header `RateLimit` has the quota.", may_retry=True),
    _kind("peer-header", 403, "The request has a header that only nodes may send.", "Remove `Foldlake-Hop` and `Foldlake-Served`."),
    _kind("not-found", 404, "There is no such path.", "`/openapi.json` lists the paths."),
    _kind("method-not-allowed", 405, "The path does not accept the method.", "Use a method of the header `Allow`."),
    _kind("precondition-failed", 412, "A condition of the request is not met.", "Read the resource again, or omit the condition."),
    _kind("requested-range-not-satisfiable", 416, "The file does not have the requested range.", "Request the whole file."),
    _kind("http-error", (), "HTTP itself refuses the request with this status.", "`detail` has the reason."),
    _kind("internal-server-error", 500, "The node failed.", "Report it: the node's log has the traceback."),
)  # fmt: skip
# Exact slugs come before families, which would match some of them.
KINDS: tuple[ProblemKind, ...] = tuple(
    sorted(
        chain(_LOOKUPS, _PARAMETERS, _COMMANDS, _STREAMS, _HTTP), key=lambda kind: (kind.is_family, kind.slug)
    )
)
_EXACT = {kind.slug: kind for kind in KINDS if not kind.is_family}
_FAMILIES = tuple(kind for kind in KINDS if kind.is_family)


def kind_of(slug: str) -> ProblemKind | None:
    """Return the kind of the problems with this slug; None if there is none."""
    return _EXACT.get(slug) or next((kind for kind in _FAMILIES if kind.matches(slug)), None)


def is_kind(slug: str, status: int) -> bool:
    """Whether there is a kind of problem with this slug that can have this status."""
    kind = kind_of(slug)
    return kind is not None and (not kind.statuses or status in kind.statuses)


def parameter_slug(name: str) -> str:
    """Return a parameter's name as it is in slugs: in lower case with dashes, `order-id` for `orderId`."""
    return re.sub(r"(?=[A-Z])", "-", name).lower()


def page_of(slug: str) -> str:
    """Return the path of the page about a kind of problem."""
    return PAGE_PREFIX + slug

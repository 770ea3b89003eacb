"""A browser gets an error as a page, a program as problem details, with the same status and headers."""

import json

import pytest

from query_api.http.pages.pages import for_client, wants_page
from query_api.http.problems import MEDIA_TYPE, ProblemError, problem_reply

CHROMIUM = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (CHROMIUM, True),
        ("text/html", True),
        ("text/html;q=0.9, application/json", False),
        ("application/problem+json, text/html;q=0.5", False),
        ("*/*", False),
        ("application/json", False),
        ("", False),
        ("text/html;q=nonsense", False),
    ],
)
def test_only_who_prefers_html_gets_a_page(accept: str, expected: bool) -> None:
    assert wants_page(accept) is expected


def test_a_page_has_the_problem_s_status_headers_and_texts() -> None:
    problem = ProblemError(
        503, "not-ready", "Partition 3 is <still> being read.", retry_after_s=1, advice="Try again."
    )

    status, headers, body = for_client(problem_reply(problem), CHROMIUM, "/api/x?key=<1>")

    named = dict(headers)
    text = body.decode()
    assert status == 503
    assert (named["Content-Type"], named["Retry-After"], named["Vary"]) == (
        "text/html; charset=utf-8",
        "1",
        "Accept",
    )
    assert "frame-ancestors 'none'" in named["Content-Security-Policy"]
    assert "Partition 3 is &lt;still&gt; being read." in text
    assert "/api/x?key=&lt;1&gt;" in text
    assert "Try again." in text
    assert "<code>not-ready</code>" in text


def test_every_error_of_a_command_is_listed() -> None:
    problem = ProblemError(
        400, "invalid-command", "Nothing was written.", errors=[{"field": "amount", "error": "is empty"}]
    )

    _, _, body = for_client(problem_reply(problem), CHROMIUM, "/")

    assert "<code>amount</code> is empty" in body.decode()


def test_a_program_gets_the_problem_as_it_is() -> None:
    reply = problem_reply(ProblemError(404, "unknown-key", "No event of this key was folded."))

    status, headers, body = for_client(reply, "*/*", "/")

    assert (status, body) == (404, reply[2])
    assert ("Content-Type", MEDIA_TYPE) in headers
    assert json.loads(body)["type"] == "urn:foldlake:problem:unknown-key"


def test_what_is_no_problem_stays_as_it_is() -> None:
    reply = 200, [("Content-Type", "application/json")], b"{}"

    assert for_client(reply, CHROMIUM, "/") is reply

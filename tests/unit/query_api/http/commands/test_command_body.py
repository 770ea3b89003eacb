"""A command's body is JSON as declared, and exactly as long as declared."""

import io

import pytest
from flask import Request
from werkzeug.test import EnvironBuilder

from query_api.http.commands.command_body import MAX_BODY_BYTES, complete_body
from query_api.http.limits.body_deadline import BodyDeadline
from query_api.http.problems import ProblemError

BODY = b'{"a": 1}'
DEADLINE = BodyDeadline(timeout_s=5)


def request(body: bytes, **environ: str) -> Request:
    given = EnvironBuilder(method="POST", content_type="application/json").get_environ()
    given.pop("CONTENT_LENGTH", None)
    # As the HTTP server says it: it hands on what has arrived, also when the rest does not.
    return Request(given | {"wsgi.input": io.BytesIO(body), "wsgi.input_terminated": True} | environ)


def refusal(body: bytes, **environ: str) -> tuple[int, str]:
    with pytest.raises(ProblemError) as refused:
        complete_body(request(body, **environ), DEADLINE)
    assert "Nothing was written." in refused.value.detail
    return refused.value.status, refused.value.slug


def test_a_body_of_the_declared_length_is_returned() -> None:
    assert complete_body(request(BODY, CONTENT_LENGTH=str(len(BODY))), DEADLINE) == BODY
    assert complete_body(request(b"", CONTENT_LENGTH="0"), DEADLINE) == b""
    said = {"CONTENT_TYPE": 'Application/JSON; charset="UTF-8"', "HTTP_CONTENT_ENCODING": "identity"}
    assert complete_body(request(BODY, CONTENT_LENGTH="8", **said), DEADLINE) == BODY


@pytest.mark.parametrize(
    ("body", "environ", "expected"),
    [
        (BODY, {"CONTENT_LENGTH": "5000"}, (400, "incomplete-body")),
        (BODY, {}, (411, "length-required")),
        (BODY, {"CONTENT_LENGTH": ""}, (411, "length-required")),
        (BODY, {"CONTENT_LENGTH": "+8"}, (411, "length-required")),
        (BODY, {"HTTP_TRANSFER_ENCODING": "chunked"}, (400, "transfer-encoding")),
        (BODY, {"HTTP_TRANSFER_ENCODING": "", "CONTENT_LENGTH": "8"}, (400, "transfer-encoding")),
        (BODY, {"CONTENT_LENGTH": str(MAX_BODY_BYTES + 1)}, (413, "body-too-large")),
        (BODY, {"CONTENT_LENGTH": "9" * 30}, (411, "length-required")),
        (BODY, {"CONTENT_LENGTH": "8", "CONTENT_TYPE": "text/plain"}, (415, "unsupported-media-type")),
        (BODY, {"CONTENT_LENGTH": "8", "CONTENT_TYPE": ""}, (415, "unsupported-media-type")),
        (BODY, {"CONTENT_LENGTH": "8", "HTTP_CONTENT_ENCODING": "gzip"}, (415, "unsupported-media-type")),
        (
            BODY,
            {"CONTENT_LENGTH": "8", "HTTP_CONTENT_ENCODING": "identity, br"},
            (415, "unsupported-media-type"),
        ),
        (
            BODY,
            {"CONTENT_LENGTH": "8", "CONTENT_TYPE": "application/json; charset=iso-8859-1"},
            (415, "unsupported-media-type"),
        ),
    ],
)
def test_any_other_body_is_refused(body: bytes, environ: dict[str, str], expected: tuple[int, str]) -> None:
    assert refusal(body, **environ) == expected

"""A page of an allowed origin can ask before it sends a key, and read why it is refused; its preflight reveals and changes nothing."""

from pathlib import Path

import pytest

from tests.unit.query_api.http.access.guarded import (
    BODY,
    JSON,
    LOOKUP,
    QUERY,
    READ,
    WEIGH,
    Guarded,
    bearer,
    slug,
)
from tests.unit.query_api.http.parcels import parcels_settings

ORIGIN = "https://app.example"
ALLOWED = "Access-Control-Allow-Origin"
PREFLIGHT = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}


@pytest.fixture
def shared(tmp_path: Path) -> Guarded:
    """A node that demands API keys, and lets pages of an origin call it."""
    return Guarded(parcels_settings(tmp_path).changed(auth="keys", node_allowed_origins=(ORIGIN,)))


def test_a_preflight_needs_no_key_and_the_request_after_it_does(shared: Guarded) -> None:
    asked = shared.client.options(WEIGH, headers=PREFLIGHT)
    sent = shared.client.post(WEIGH, data=BODY, headers={**JSON, "Origin": ORIGIN})

    assert (asked.status_code, asked.headers[ALLOWED], asked.data) == (200, ORIGIN, b"")
    assert "Authorization" in asked.headers["Access-Control-Allow-Headers"]
    assert (sent.status_code, slug(sent), sent.headers[ALLOWED]) == (401, "unauthenticated", ORIGIN)


def test_a_page_with_a_key_reads_the_answer(shared: Guarded) -> None:
    headers = {**bearer(shared.secret(READ)), "Origin": ORIGIN}

    answer = shared.client.get(LOOKUP, query_string=QUERY, headers=headers)

    assert (answer.status_code, answer.headers[ALLOWED]) == (200, ORIGIN)


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("OPTIONS", {**PREFLIGHT, "Origin": "https://attacker.example"}, 403),
        ("OPTIONS", {"Origin": ORIGIN}, 401),
        ("OPTIONS", {"Access-Control-Request-Method": "POST"}, 401),
        ("GET", PREFLIGHT, 401),
        ("OPTIONS", {**PREFLIGHT, "Foldlake-Hop": "any"}, 403),
    ],
)
def test_what_is_no_preflight_of_such_a_page_is_refused(
    shared: Guarded, method: str, headers: dict[str, str], status: int
) -> None:
    answer = shared.client.open(LOOKUP, method=method, headers=headers)

    assert answer.status_code == status

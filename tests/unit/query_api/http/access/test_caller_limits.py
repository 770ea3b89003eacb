"""The limits of each caller, on the fast path and behind it: quotas of requests, and shares of the slots."""

from pathlib import Path

import pytest
from flask import request

from query_api.http.limits.rate_limit import client_of
from tests.unit.query_api.http.access.guarded import (
    LOOKUP,
    QUERY,
    READ,
    WEIGH,
    Guarded,
    bearer,
    slug,
)
from tests.unit.query_api.http.parcels import ANSWER, parcels_settings

BURST = 3


@pytest.fixture
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guarded:
    """A node that accepts three requests of a caller at once, and then one in an hour."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    values = {"auth": "keys", "caller_rate": 1 / 3600, "caller_burst": BURST}
    return Guarded(parcels_settings(tmp_path).changed(**values))


@pytest.mark.parametrize("path", [LOOKUP, "/api/read-models", "/metrics"])
def test_a_caller_gets_429_beyond_its_quota(limited: Guarded, path: str) -> None:
    secret = limited.secret(READ)
    query = QUERY if path == LOOKUP else None

    answers = [limited.get(path, secret, query) for _ in range(BURST + 1)]

    assert [answer.status_code for answer in answers] == [200] * BURST + [429]
    left = [answer.headers["RateLimit"].split(";")[1] for answer in answers]
    assert left == ["r=2", "r=1", "r=0", "r=0"]
    assert {answer.headers["RateLimit-Policy"] for answer in answers} == {'"caller";q=3;w=10800'}
    assert slug(answers[-1]) == "rate-limited"
    assert 3590 <= int(answers[-1].headers["Retry-After"]) <= 3600
    assert limited.audited()[-1]["problem"] == "rate-limited"


def test_another_caller_is_answered(limited: Guarded) -> None:
    first, second = limited.secret(READ), limited.secret(READ)
    for _ in range(BURST + 1):
        limited.get(LOOKUP, first, QUERY)

    assert limited.get(LOOKUP, first, QUERY).status_code == 429
    assert limited.get(LOOKUP, second, QUERY).text == ANSWER


def test_what_a_caller_may_not_do_counts_too(limited: Guarded) -> None:
    secret = limited.secret(READ)

    statuses = [limited.client.post(WEIGH, headers=bearer(secret)).status_code for _ in range(BURST + 1)]

    assert statuses == [403] * BURST + [429]


def test_probes_and_unknown_callers_are_not_counted(limited: Guarded) -> None:
    for _ in range(BURST + 2):
        assert limited.get("/healthz").status_code == 200
        answer = limited.get(LOOKUP, "fl_000000000000_x", QUERY)
        assert answer.status_code == 401
        assert "RateLimit" not in answer.headers


def test_without_a_rate_no_answer_has_a_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    node = Guarded(parcels_settings(tmp_path).changed(auth="keys"))

    assert "RateLimit" not in node.get(LOOKUP, node.secret(READ), QUERY).headers


def test_slots_are_shared_by_the_addresses_of_a_caller(limited: Guarded) -> None:
    seen: list[str] = []
    limited.node.app.before_request(lambda: seen.append(client_of(request.environ)))
    headers = bearer(limited.secret(READ))

    for address in ("10.0.0.1", "10.0.0.2"):
        limited.client.get("/api/read-models", headers=headers, environ_overrides={"REMOTE_ADDR": address})

    assert seen == ["key:key 0", "key:key 0"]


def test_without_authentication_an_address_is_a_client() -> None:
    assert client_of({"REMOTE_ADDR": "10.0.0.1"}) == "10.0.0.1"
    assert client_of({}) == ""

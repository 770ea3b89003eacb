"""Every lookup failure reason has one HTTP status and advice for the caller."""

import json

import pytest

from query_api.http.problems import lookup_problem
from query_api.lookup.lookup_results import FailureReason, LookupFailedError

STATUSES = {
    FailureReason.NOT_OWNER: 421,
    FailureReason.NOT_READY: 503,
    FailureReason.NOT_UP_TO_BOUND: 503,
    FailureReason.UNKNOWN_MODEL: 404,
    FailureReason.UNKNOWN_KEY: 404,
}


def test_set_of_reasons_is_closed() -> None:
    assert set(STATUSES) == set(FailureReason)


@pytest.mark.parametrize("reason", FailureReason)
def test_reason_is_rendered_as_a_problem(reason: FailureReason) -> None:
    status, header_list, body = lookup_problem(LookupFailedError(reason, "what happened"), "node-1")

    problem, headers = json.loads(body), dict(header_list)
    assert status == problem["status"] == STATUSES[reason]
    assert headers["Content-Type"] == "application/problem+json"
    assert (problem["detail"], problem["advice"]) == ("what happened", reason.value.advice)
    assert ("Retry-After" in headers) == (STATUSES[reason] in {421, 503})
    assert headers["Foldlake-Reason"] == reason.slug

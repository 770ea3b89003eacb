"""Every reason for which a lookup has no answer has one status and tells the caller what to do."""

import pytest

from query_api.http.problems import lookup_problem
from query_api.lookup.lookup_failures import FailureReason, LookupFailedError

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
    response = lookup_problem(LookupFailedError(reason, "what happened"), "node-1")

    problem = response.get_json(force=True)
    assert response.status_code == problem["status"] == STATUSES[reason]
    assert response.content_type == "application/problem+json"
    assert (problem["detail"], problem["advice"]) == ("what happened", reason.value.advice)
    assert ("Retry-After" in response.headers) == (STATUSES[reason] in {421, 503})
    assert response.headers["Foldlake-Reason"] == reason.slug

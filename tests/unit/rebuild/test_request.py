"""A request is validated before anything starts; each error names the field and its allowed values."""

from typing import Any

import pytest

from include.declarations.load import load_catalog
from include.rebuild.comparison.thresholds import Thresholds
from include.rebuild.errors import RequestError
from include.rebuild.request import RebuildRequest, RollbackRequest, rebuild_request, rollback_request
from include.versions.start_rule import StartRule

MODELS = load_catalog().models
GOOD: dict[str, Any] = {"read_model": "balance", "reason": "why"}


def test_empty_fields_get_their_defaults() -> None:
    request = rebuild_request({**GOOD, "fold_revision": None}, MODELS, default_grace_h=24.0)
    newest = MODELS["balance"].newest_fold_revision
    assert request == RebuildRequest({"balance": newest}, "why", approve=True, grace_h=24.0)


def test_given_fields_are_kept() -> None:
    conf = GOOD | {"fold_revision": 1, "approve": False, "grace_hours": 0, "reason": " two\n words "}
    assert rebuild_request(conf, MODELS, 24.0) == RebuildRequest(
        {"balance": 1}, "two words", approve=False, grace_h=0.0
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"read_model": "unknown"}, "Unknown read model 'unknown'; allowed: balance"),
        ({"read_model": None}, "Unknown read model"),
        ({"reason": "  "}, "reason is empty"),
        ({"reason": None}, "reason is empty"),
        ({"reason": "x" * 501}, "501 characters"),
        ({"fold_revision": 99}, "no fold revision 99"),
        ({"fold_revision": 0}, "fold_revision is 0"),
        ({"fold_revision": "one"}, "fold_revision is 'one'"),
        ({"fold_revision": True}, "fold_revision is True"),
        ({"approve": "yes"}, "approve is 'yes'"),
        ({"grace_hours": -1}, "grace_hours is -1"),
        ({"grace_hours": float("nan")}, "grace_hours is nan"),
        ({"grace_hours": "long"}, "grace_hours is 'long'"),
        ({"start": "yesterday"}, "start is 'yesterday'; allowed: `earliest`, a time"),
        ({"start": "shift-by few"}, "start is 'shift-by few'"),
        ({"max_changed_percent": 101}, "max_changed_percent is 101; allowed: a number from 0 to 100"),
        ({"max_total_change": "much"}, "max_total_change is 'much'"),
        ({"no_negative": 1}, "no_negative is 1"),
        ({"dry_run": "yes"}, "dry_run is 'yes'; allowed: true"),
        ({"aprove": False}, "Unknown field: aprove"),
    ],
)
def test_invalid_request_is_rejected(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        rebuild_request(GOOD | changed, MODELS, 24.0)


def test_the_start_of_a_version_is_a_rule() -> None:
    assert rebuild_request(GOOD | {"start": ""}, MODELS, 24.0).start is None
    assert rebuild_request(GOOD | {"start": "shift-by -100"}, MODELS, 24.0).start == StartRule(shift_by=-100)


def test_thresholds_and_a_dry_run_are_part_of_the_request() -> None:
    conf = GOOD | {"max_changed_percent": 2.5, "max_total_change": 0, "no_negative": True, "dry_run": True}
    request = rebuild_request(conf, MODELS, 24.0)
    assert request.thresholds == Thresholds(2.5, 0.0, no_negative=True)
    assert request.dry_run


def test_rollback_request_is_validated_too() -> None:
    assert rollback_request(GOOD, MODELS) == RollbackRequest("balance", None, "why")
    assert rollback_request(GOOD | {"version": 3}, MODELS).version == 3
    assert rollback_request(GOOD | {"force": True}, MODELS).force
    with pytest.raises(RequestError, match="force is 'yes'; allowed: true"):
        rollback_request(GOOD | {"force": "yes"}, MODELS)
    with pytest.raises(RequestError, match="Unknown field: to"):
        rollback_request(GOOD | {"to": 3}, MODELS)

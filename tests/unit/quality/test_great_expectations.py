"""Expectations are evaluated without network access, their failures are counted, and none passes without a result."""

import socket
from typing import Any

import pandas as pd
import pytest

from include.quality.check import QualityError, StoreName
from include.replay.key_expectations import (
    FRESH,
    KEY_COUNT,
    NOT_TRUNCATED,
    SAME_COUNT,
    WHOLE_PARTITIONS,
    fresh_within,
)
from include.replay.validation import validate

LAGS = pd.DataFrame([{"place": name, "lag_s": lag} for name, lag in (("a", 1.0), ("b", 9.0), ("c", 5.0))])


def test_failures_are_counted_and_named() -> None:
    (result,) = validate(StoreName.LAKE, LAGS, [fresh_within(5.0)], ("place",))

    assert (result.expectation, result.checked, result.failed, result.passed) == (FRESH, 3, 1, False)
    assert result.sample == ({"place": "b"},)


def test_a_met_expectation_reports_the_number_of_rows() -> None:
    (result,) = validate(StoreName.LAKE, LAGS, [fresh_within(9.0)], ("place",))

    assert (result.checked, result.failed, result.passed) == (3, 0, True)


def test_a_partition_is_truncated_when_a_tenth_of_it_is_missing() -> None:
    rows = pd.DataFrame(
        [
            {"place": "lake", "partition": str(n), "missing_share": share}
            for n, share in enumerate((0.0, 0.09, 0.1))
        ]
    )

    (result,) = validate(StoreName.LAKE, rows, [NOT_TRUNCATED], ("place", "partition"))

    assert (result.expectation, result.failed) == (WHOLE_PARTITIONS, 1)
    assert result.sample == ({"place": "lake", "partition": "2"},)


def test_a_difference_in_the_number_of_keys_fails() -> None:
    rows = pd.DataFrame([{"place": "a", "difference": 0}, {"place": "b", "difference": 3}])

    (result,) = validate(StoreName.NODES, rows, [SAME_COUNT], ("place",))

    assert (result.expectation, result.failed, result.sample) == (KEY_COUNT, 1, ({"place": "b"},))


def test_a_missing_column_is_an_error() -> None:
    with pytest.raises(QualityError, match="gave no verdict"):
        validate(StoreName.LAKE, LAGS.drop(columns="lag_s"), [fresh_within(5.0)], ("place",))


def test_no_connection_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: tried.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_, **__: tried.append(host))

    validate(StoreName.LAKE, LAGS, [fresh_within(5.0)], ("place",))

    assert tried == []

"""Expectations are judged on this machine alone, counted, and never pass for want of an answer."""

import socket
from typing import Any

import pandas as pd
import pytest

from include.quality.check import QualityError, StoreName
from spark_jobs.quality import expectations
from spark_jobs.quality.expectations import FRESH, KEY_COUNT, WHOLE_PARTITIONS, judge

LAGS = pd.DataFrame([{"place": name, "lag_s": lag} for name, lag in (("a", 1.0), ("b", 9.0), ("c", 5.0))])


def test_what_fails_is_counted_and_named() -> None:
    (result,) = judge(StoreName.LAKE, LAGS, expectations.of_places(5.0), ("place",))

    assert (result.expectation, result.checked, result.failed, result.passed) == (FRESH, 3, 1, False)
    assert result.sample == ({"place": "b"},)


def test_a_met_expectation_reports_how_many_rows() -> None:
    (result,) = judge(StoreName.LAKE, LAGS, expectations.of_places(9.0), ("place",))

    assert (result.checked, result.failed, result.passed) == (3, 0, True)


def test_a_partition_is_truncated_when_a_tenth_of_it_is_missing() -> None:
    rows = pd.DataFrame(
        [
            {"place": "lake", "partition": str(n), "lacking_share": share}
            for n, share in enumerate((0.0, 0.09, 0.1))
        ]
    )

    (result,) = judge(StoreName.LAKE, rows, expectations.of_partitions(), ("place", "partition"))

    assert (result.expectation, result.failed) == (WHOLE_PARTITIONS, 1)
    assert result.sample == ({"place": "lake", "partition": "2"},)


def test_a_difference_in_the_number_of_keys_fails() -> None:
    rows = pd.DataFrame([{"place": "a", "difference": 0}, {"place": "b", "difference": 3}])

    (result,) = judge(StoreName.NODES, rows, expectations.of_key_counts(), ("place",))

    assert (result.expectation, result.failed, result.sample) == (KEY_COUNT, 1, ({"place": "b"},))


def test_a_missing_column_is_an_error() -> None:
    with pytest.raises(QualityError, match="could not judge"):
        judge(StoreName.LAKE, LAGS.drop(columns="lag_s"), expectations.of_places(5.0), ("place",))


def test_nothing_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: tried.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_, **__: tried.append(host))

    judge(StoreName.LAKE, LAGS, expectations.of_places(5.0), ("place",))

    assert tried == []

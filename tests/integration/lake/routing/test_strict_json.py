"""The decoder of JSON reads exactly RFC 8259: each text gives this value, or is refused for this reason."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from spark_jobs.folding.decode import REASON
from spark_jobs.folding.json_decode import JsonDecoder
from tests.support.json_records.members import OTHER_TYPE, READ, SAMPLE, sample
from tests.support.json_records.texts import AMONG_OTHERS, BOTH_CASES, CASES


@dataclass(frozen=True)
class Found:
    """The event that the decoder has made of a text, and the reason why there is none."""

    event: Any
    reason: str | None


@pytest.fixture(scope="module")
def found(lake_spark: SparkSession) -> Callable[[str | bytes], Found]:
    texts = list(CASES)
    values = (text.encode() if isinstance(text, str) else text for text in texts)
    rows = [(b"k", bytearray(value), 0, number) for number, value in enumerate(values)]
    records = lake_spark.createDataFrame(rows, "key binary, value binary, partition int, offset bigint")
    events = JsonDecoder((SAMPLE,), 1).decode(records)
    decoded = events.select("offset", col(REASON).alias("reason"), "event_type", "Sample").collect()
    by_text = {
        texts[row["offset"]]: Found(
            row["Sample"], row["reason"] or (None if row["event_type"] else OTHER_TYPE)
        )
        for row in decoded
    }
    return by_text.__getitem__


@pytest.mark.parametrize("text", CASES, ids=lambda text: repr(text)[:80])
def test_a_text_is_read_or_refused(found: Callable[[str | bytes], Found], text: str | bytes) -> None:
    assert found(text).reason == CASES[text]
    assert found(text).event is not None or CASES[text] is not None


@pytest.mark.parametrize(("name", "literal", "expected"), READ)
def test_a_member_is_read_exactly(
    found: Callable[[str | bytes], Found], name: str, literal: str, expected: object
) -> None:
    value = found(sample(f'"{name}":{literal}')).event[name]
    assert (value.astimezone(UTC) if isinstance(value, datetime) else value) == expected


def test_names_that_differ_by_case_are_two_members(found: Callable[[str | bytes], Found]) -> None:
    event = found(BOTH_CASES).event
    assert (event["text"], event["other"]) == ("a", "b")


def test_a_number_is_found_in_the_text(found: Callable[[str | bytes], Found]) -> None:
    assert found(AMONG_OTHERS).event["money"] == Decimal("9.00")

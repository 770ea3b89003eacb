"""Both decoders, Spark's and Python's, read payloads of any schema with equal values, valid or damaged."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import find, settings
from hypothesis.errors import NoSuchExample
from pyspark.sql import SparkSession

from tests.support.avro.both_decoders import PAYLOADS, Difference, differences
from tests.support.avro.schemas import SchemaCase, generated_cases, schema_cases

# Schemas in one Spark job: a few seconds, most of them for its plan.
BATCH = 20
CI_SCHEMAS, ENDURANCE_SCHEMAS = 100, 2_000


def test_both_decoders_read_any_schema_with_equal_values(lake_spark: SparkSession) -> None:
    compare_decoders(lake_spark, CI_SCHEMAS)


@pytest.mark.endurance
@pytest.mark.timeout(3600)
def test_both_decoders_read_thousands_of_schemas_with_equal_values(lake_spark: SparkSession) -> None:
    compare_decoders(lake_spark, ENDURANCE_SCHEMAS)


def test_a_default_that_is_no_value_of_its_type_concerns_only_the_records_that_need_it(
    lake_spark: SparkSession,
) -> None:
    time = {"name": "occurredOn", "type": {"type": "long", "logicalType": "timestamp-millis"}}
    price = {"name": "f0", "type": {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 1}}
    day = {"name": "f0", "type": {"type": "int", "logicalType": "date"}}
    old, *defaults = (
        json.dumps({"type": "record", "name": "Event", "fields": fields})
        for fields in (
            [time],
            [time, price | {"default": "\u00ff\u0001"}],
            [time, day | {"default": 2**31 - 1}],
        )
    )

    found, events = differences(
        lake_spark, [SchemaCase(old, old, 1), *(SchemaCase(one, old, 1) for one in defaults)]
    )

    assert not found
    # Some damaged payloads can be read, too.
    assert PAYLOADS <= events <= 2 * PAYLOADS


def compare_decoders(spark: SparkSession, number: int) -> None:
    """Fail with the smallest schemas that the decoders read differently, among this number of generated ones."""
    cases = generated_cases(number)
    decoded = 0
    for start in range(0, len(cases), BATCH):
        batch = cases[start : start + BATCH]
        found, events = differences(spark, batch)
        decoded += events
        assert not found, smallest(spark, found)
    # Neither decoder rejects all.
    assert decoded > PAYLOADS * len(cases) / 2


def smallest(spark: SparkSession, found: Sequence[Difference]) -> Difference:
    """Return a small schema that the decoders read differently."""

    def differs(case: SchemaCase) -> bool:
        return bool(differences(spark, [case])[0])

    try:
        case = find(schema_cases(), differs, settings=settings(max_examples=50, database=None, deadline=None))
    except NoSuchExample:
        return min(found, key=lambda one: len(one.case.reader + one.case.writer))
    return differences(spark, [case])[0][0]

"""Rules of read models as SQL of DuckDB: which are translated, and which columns they use."""

from dataclasses import replace
from typing import Any

import pytest

from include.declarations.read_model import ReadModel, StateField, decimal_type
from include.read_models.balance.model import READ_MODEL as BALANCE
from include.replay.fold_sql import NotTranslatedError, fold_sql, merge_sql


def balance(fold: dict[str, Any], types: dict[str, Any], **changed: Any) -> ReadModel:  # noqa: ANN401 - fields of a read model
    state = tuple(StateField(name, kind) for name, kind in types.items())
    return replace(BALANCE, state=state, folds={1: fold}, **changed)


def test_the_fields_have_the_types_of_the_state_record() -> None:
    rules = fold_sql(BALANCE, 1)

    assert rules.types == {
        "amount": "DECIMAL(38,2)",
        "event_count": "BIGINT",
        "source_partition": "INTEGER",
        "source_offset": "BIGINT",
        "occurred_on": "TIMESTAMP WITH TIME ZONE",
    }
    assert list(rules.record) == list(rules.types)
    assert rules.columns == {("event_type",), ("amount",)}
    assert rules.key_columns == {("customerId",)}


@pytest.mark.parametrize(
    ("fold", "kind", "reason"),
    [
        (dict, "long", "its fold is a function"),
        ({"total": "sum(amount / 3)"}, decimal_type(38, 2), "may have another result in DuckDB"),
        ({"total": "sum(ratio)"}, "double", "sum of floating-point numbers"),
        ({"total": "sum(CAST(amount AS DOUBLE))"}, "long", "may have another result in DuckDB"),
    ],
)
def test_a_fold_that_duckdb_may_compute_in_another_way_is_not_translated(
    fold: Any,  # noqa: ANN401 - a mapping, or a function
    kind: Any,  # noqa: ANN401 - an Avro type
    reason: str,
) -> None:
    with pytest.raises(NotTranslatedError, match=reason):
        fold_sql(balance(fold, {"total": kind}), 1)


def test_a_key_that_is_a_function_is_not_translated() -> None:
    with pytest.raises(NotTranslatedError, match="its key is a function"):
        fold_sql(replace(BALANCE, key=lambda: None), 1)  # type: ignore[arg-type, return-value]  # never called


def test_a_fold_revision_that_the_module_lacks_is_not_translated() -> None:
    with pytest.raises(NotTranslatedError, match="no fold revision 7"):
        fold_sql(BALANCE, 7)


def test_the_derived_merge_is_translated_with_the_position() -> None:
    merge = merge_sql(BALANCE, 1)

    assert merge is not None
    assert merge["amount"] == 'CAST(SUM("amount") AS DECIMAL(38,2))'
    assert merge["event_count"] == "CAST(sum(event_count) AS BIGINT)"
    assert merge["source_offset"] == "CAST(max(source_offset) AS BIGINT)"


def test_a_fold_without_a_merge_has_none() -> None:
    model = balance({"last": "max_by(event_type, offset)"}, {"last": "string"})

    assert merge_sql(model, 1) is None

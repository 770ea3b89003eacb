"""A second read model, in one new file: how often and how much each customer paid in on each day."""

from foldlake import ReadModel, StateField, decimal_type

DECLARATIONS = [
    ReadModel(
        name="deposits-per-day",
        source_topic="balance",
        event_types=("FundsAdded",),
        key="concat_ws('/', customerId, date_format(occurredOn, 'yyyy-MM-dd'))",
        state=(
            StateField("deposits", "long", "Number of deposits."),
            StateField("largest", decimal_type(18, 2), "The largest of them."),
        ),
        folds={1: {"deposits": "count(amount)", "largest": "max(amount)"}},
    ),
]

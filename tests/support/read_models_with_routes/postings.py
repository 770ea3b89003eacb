"""A route, as a newcomer would add one: each deposit becomes two postings, one to its day's account and one to the bank's."""

from foldlake import Route

DECLARATIONS = [
    Route(
        name="postings",
        source_topic="balance",
        event_types=("FundsAdded",),
        # Only deposits of at least one whole unit.
        where="amount >= 1",
        # The accounts of a deposit: its day, and the bank.
        each="array(date_format(occurredOn, 'yyyy-MM-dd'), 'bank')",
        output_topic="postings",
        output_type="Posting",
        # `item` is the account.
        fields={
            "id": "concat_ws('/', id, item)",
            "occurredOn": "occurredOn",
            "account": "item",
            "amount": "amount",
            "customer": "customerId",
        },
    ),
]

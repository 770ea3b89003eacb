"""The read model `balance`: how much money each customer has, and its API."""

from foldlake import Command, DecimalField, Lookup, ReadModel, StateField, TextField, decimal_type

FUNDS = (TextField("customerId", max_bytes=256), DecimalField("amount", precision=18, scale=2))
EXAMPLE = {"customerId": "1", "amount": "5.00"}

READ_MODEL = ReadModel(
    name="balance",
    source_topic="balance",
    event_types=("FundsAdded", "FundsWithdrawn"),
    key="customerId",
    state=(StateField("amount", decimal_type(38, 2), "Balance in the account's currency."),),
    folds={1: {"amount": "sum(CASE WHEN event_type = 'FundsWithdrawn' THEN -amount ELSE amount END)"}},
    key_doc="The customer's id.",
)
DECLARATIONS = [
    READ_MODEL,
    Lookup("/api/customers.getBalance", parameter="customerId", fields=("amount",)),
    Command("/api/balance.addFunds", "FundsAdded", FUNDS, EXAMPLE),
    Command("/api/balance.withdrawFunds", "FundsWithdrawn", FUNDS, EXAMPLE),
]

"""The HTTP API of `balance`: a customer's balance, and adding and withdrawing funds."""

from include.declarations.api import Command, NamedLookup
from include.declarations.command_fields import DecimalField, TextField

FUNDS = (TextField("customerId", max_bytes=256), DecimalField("amount", precision=18, scale=2))
EXAMPLE = {"customerId": "1", "amount": "5.00"}

DECLARATIONS = [
    NamedLookup(
        "/api/customers.getBalance",
        parameter="customerId",
        fields=("amount",),
        max_key_bytes=256,
        example="1",
    ),
    Command("/api/balance.addFunds", "FundsAdded", FUNDS, EXAMPLE),
    Command("/api/balance.withdrawFunds", "FundsWithdrawn", FUNDS, EXAMPLE),
]

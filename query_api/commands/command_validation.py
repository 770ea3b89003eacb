"""The body of a command, checked strictly: what is not exactly right is refused, with all that is wrong with it."""

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from query_api.http.problems import ProblemError

MAX_BODY_BYTES = 16 * 1024
MAX_CUSTOMER_ID_BYTES = 256
MAX_EVENT_ID_CHARACTERS = 128
# Avro's decimal(18,2): what the events' schemas have.
DECIMALS = 2
AMOUNT_LIMIT = Decimal(10) ** (18 - DECIMALS)
AMOUNT_PATTERN = re.compile(r"-?[0-9]{1,64}(\.[0-9]{1,64})?")
FIELDS = frozenset({"customerId", "amount", "id"})
REQUIRED = ("customerId", "amount")


@dataclass(frozen=True)
class FundsCommand:
    """A command to add or withdraw funds; `event_id` None lets the node choose one."""

    customer_id: str
    amount: Decimal
    event_id: str | None


class _NumberText(str):
    """A JSON number as it was written: its digits and its scale are not lost to a float."""

    __slots__ = ()


class _RefusedJsonError(ValueError):
    """JSON that Python reads and nobody should."""


def parse_command(body: bytes) -> FundsCommand:
    """Return the command in a request's body; raises ProblemError 400 with everything that is wrong in `errors`."""
    fields = _json_object(body)
    errors: list[dict[str, str]] = []
    errors += [_error(name, "is missing") for name in REQUIRED if name not in fields]
    errors += [
        _error(name, f"is unknown; possible are {sorted(FIELDS)}") for name in sorted(fields.keys() - FIELDS)
    ]
    checks = {"customerId": _customer_id_error, "amount": _amount_error, "id": _event_id_error}
    for name, check in checks.items():
        finding = check(fields[name]) if name in fields else None
        if finding:
            errors.append(_error(name, finding))
    if errors:
        detail = "; ".join(f"{e['field']} {e['error']}" for e in errors) + ". Nothing was written."
        raise ProblemError(400, "invalid-command", detail, errors=errors)
    return FundsCommand(fields["customerId"], Decimal(fields["amount"]), fields.get("id"))


def _error(name: str, error: str) -> dict[str, str]:
    return {"field": name[:64].encode(errors="replace").decode(), "error": error}


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(
            body.decode(),
            parse_float=_NumberText,
            parse_int=_NumberText,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object,
        )
    except (ValueError, RecursionError) as error:
        detail = f"The body is not JSON in UTF-8 ({error}). Nothing was written."
        raise ProblemError(400, "not-json", detail) from error
    if not isinstance(value, dict):
        raise ProblemError(400, "not-json", "The body is not a JSON object. Nothing was written.")
    return value


def _refuse_constant(name: str) -> None:
    raise _RefusedJsonError(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _RefusedJsonError("a field is given twice")
    return fields


def _customer_id_error(value: object) -> str | None:
    if not isinstance(value, str) or isinstance(value, _NumberText):
        return "must be a string"
    if not value:
        return "is empty"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "is not valid Unicode"
    return (
        f"has {size} bytes of UTF-8; up to {MAX_CUSTOMER_ID_BYTES} are possible"
        if size > MAX_CUSTOMER_ID_BYTES
        else None
    )


def _event_id_error(value: object) -> str | None:
    if not isinstance(value, str) or isinstance(value, _NumberText):
        return "must be a string"
    if not 1 <= len(value) <= MAX_EVENT_ID_CHARACTERS:
        return f"has {len(value)} characters; 1 to {MAX_EVENT_ID_CHARACTERS} are possible"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode"
    return None


def _amount_error(value: object) -> str | None:
    """Return what is wrong with an amount: a string or JSON number of plain digits, as in 5, 5.0 or 5.00."""
    if not isinstance(value, str) or not AMOUNT_PATTERN.fullmatch(value):
        return (
            'must be a decimal number without an exponent, as a string or a JSON number, for example "5.00"'
        )
    amount = Decimal(value)
    if amount <= 0:
        return "must be above zero"
    if len(value.partition(".")[2]) > DECIMALS:
        return f"has more than {DECIMALS} decimals"
    if amount >= AMOUNT_LIMIT:
        return f"is too large: it must be below {AMOUNT_LIMIT:f}"
    return None

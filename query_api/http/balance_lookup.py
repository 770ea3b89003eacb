"""The answer of `GET /api/customers.getBalance`: `{"amount":5.00}`."""

from urllib.parse import quote, unquote_to_bytes

from include.read_models.balance import READ_MODEL
from query_api.http.json_text import unscaled_text
from query_api.http.problems import ProblemError
from query_api.lookup.local_lookup import LocalAnswer

PATH = "/api/customers.getBalance"
MODEL = READ_MODEL.name
MAX_CUSTOMER_ID_BYTES = 256
_amount_type = READ_MODEL.state[0].avro_type
SCALE: int = _amount_type["scale"] if isinstance(_amount_type, dict) else 0


def body_of(answer: LocalAnswer) -> bytes:
    """Return the JSON of a customer's balance, exact and with its scale kept."""
    return b'{"amount":%s}' % unscaled_text(answer.raw["amount"], SCALE).encode()


def parameters(query_string: str, allowed: frozenset[str]) -> dict[str, str]:
    """Return a query string's parameters; raises ProblemError for unknown, repeated or undecodable ones."""
    found: dict[str, list[str]] = {}
    try:
        for part in query_string.split("&"):
            name, _, value = part.partition("=")
            if part:
                found.setdefault(_text(name), []).append(_text(value))
    except UnicodeDecodeError as error:
        raise ProblemError(
            400, "invalid-query", "The query string is not UTF-8 in percent encoding."
        ) from error
    unknown = sorted(found.keys() - allowed)
    if unknown:
        raise ProblemError(400, "unknown-parameter", f"Unknown: {unknown}; possible are {sorted(allowed)}.")
    repeated = sorted(name for name, values in found.items() if len(values) > 1)
    if repeated:
        raise ProblemError(400, "repeated-parameter", f"Given more than once: {repeated}.")
    return {name: values[0] for name, values in found.items()}


def _text(encoded: str) -> str:
    # A raw byte above 127 reaches us as Latin-1, as WSGI has it; strictly, unlike urllib's own parse_qs.
    return unquote_to_bytes(encoded.replace("+", " ").encode("latin-1")).decode()


def customer_key(customer_id: str | None) -> bytes:
    """Return the key of a customer id from a request; raises ProblemError."""
    if not customer_id:
        raise ProblemError(400, "missing-customer-id", f"Give the customer's id: {PATH}?customerId=...")
    key = customer_id.encode()
    if len(key) > MAX_CUSTOMER_ID_BYTES:
        detail = f"customerId has {len(key)} bytes of UTF-8, {MAX_CUSTOMER_ID_BYTES} are possible."
        raise ProblemError(400, "customer-id-too-long", detail)
    return key


def target_of(customer_id: str, min_offset: str | None) -> str:
    """Return path and query under which another node gives the same answer."""
    bound = f"&minOffset={min_offset}" if min_offset else ""
    return f"{PATH}?customerId={quote(customer_id, safe='')}{bound}"

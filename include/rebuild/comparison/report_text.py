"""Texts of reports: numbers as people read them, exact and with separators of thousands, and where the state of a key is explained."""

import shlex
from decimal import Decimal, InvalidOperation
from urllib.parse import urlencode

ABSENT = "-"


def number(text: str | None) -> str:
    """Return a number with separators of thousands; other text as it is; a dash for None."""
    if text is None:
        return ABSENT
    try:
        value = Decimal(text)
    except InvalidOperation:
        return text
    return f"{value:,f}" if value.is_finite() else text


def state_value(text: str | None, is_number: bool) -> str:
    """Return the value of a field of a state: text that only looks like a number stays as it is."""
    return number(text) if is_number or text is None else text


def signed(value: Decimal | None) -> str:
    """Return a change with its sign; a dash for None."""
    if value is None:
        return ABSENT
    return f"{value:+,f}" if value else "0"


def percent(value: float | Decimal | None, *, sign: bool = False) -> str:
    """Return a percentage with two decimals, or `< 0.01 %`; a dash for None."""
    if value is None:
        return ABSENT
    if 0 < abs(float(value)) < 0.01:  # noqa: PLR2004 - what two decimals cannot show
        return "< 0.01 %"
    return f"{value:+,.2f} %" if sign else f"{value:,.2f}".rstrip("0").rstrip(".") + " %"


def explain_path(read_model: str, key: str) -> str:
    """Return the path of the page on a query node."""
    return f"/explain?{urlencode({'readModel': read_model, 'key': key})}"


def explain_command(read_model: str, key: str, *, version: int) -> str:
    """Return the command, for a shell."""
    return f"./foldlake explain {shlex.quote(read_model)} {shlex.quote(key)} --version {version}"

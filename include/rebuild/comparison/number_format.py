"""Numbers as people read them in reports: exact, with separators of thousands."""

from decimal import Decimal, InvalidOperation

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

"""The fields of a command: how a JSON value is validated and converted to the event's value."""

import re
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

DECIMAL_PATTERN = re.compile(r"-?[0-9]{1,64}(\.[0-9]{1,64})?")
INTEGER_PATTERN = re.compile(r"-?[0-9]{1,19}")


class NumberText(str):
    """A JSON number as written, so that no conversion to a float loses digits or scale."""

    __slots__ = ()


@dataclass(frozen=True)
class CommandField:
    """A field of a command; the event's field of the same name gets its value. Subclasses define which values are valid.

    is_required: whether the command must have it. An optional field has a default in the event's schema.
    """

    name: str

    @property
    def is_required(self) -> bool:
        """Whether a command without the field is rejected."""
        return True

    def error(self, value: object) -> str | None:
        """Return why a JSON value (numbers as NumberText) is invalid, or None."""
        raise NotImplementedError

    def event_value(self, value: object) -> object:
        """Return the event's value for a valid JSON value."""
        return value

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of valid values, for the contract."""
        return {}


@dataclass(frozen=True)
class TextField(CommandField):
    """A string that is not empty, limited to `max_bytes` of UTF-8 or `max_characters` if given."""

    max_bytes: int | None = None
    max_characters: int | None = None
    optional: bool = False

    @property
    def is_required(self) -> bool:
        """Whether a command without the field is rejected."""
        return not self.optional

    def error(self, value: object) -> str | None:
        """Return why a value is invalid, or None."""
        if not isinstance(value, str) or isinstance(value, NumberText):
            return "must be a string"
        if not value:
            return "is empty"
        if self.max_characters is not None and len(value) > self.max_characters:
            return f"has {len(value)} characters; at most {self.max_characters} are allowed"
        try:
            size = len(value.encode())
        except UnicodeEncodeError:
            return "is not valid Unicode"
        if self.max_bytes is not None and size > self.max_bytes:
            return f"has {size} bytes of UTF-8; at most {self.max_bytes} are allowed"
        return None

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of valid values; bytes are not characters, so the description has their limit."""
        limits = [limit for limit in (self.max_characters, self.max_bytes) if limit is not None]
        schema: dict[str, Any] = {"type": "string", "minLength": 1}
        if limits:
            schema["maxLength"] = min(limits)
        if self.max_bytes is not None:
            schema["description"] = f"At most {self.max_bytes} bytes of UTF-8."
        return schema


@dataclass(frozen=True)
class DecimalField(CommandField):
    """A decimal above zero, as a string or a JSON number without an exponent, such as 5, 5.0 or 5.00.

    precision, scale: those of Avro's decimal in the event's schema.
    """

    precision: int
    scale: int

    def error(self, value: object) -> str | None:
        """Return why a value is invalid, or None."""
        if not isinstance(value, str) or not DECIMAL_PATTERN.fullmatch(value):
            return 'must be a decimal number without an exponent, as a string or a JSON number, for example "5.00"'
        number, limit = Decimal(value), Decimal(10) ** (self.precision - self.scale)
        if number <= 0:
            return "must be above zero"
        if len(value.partition(".")[2]) > self.scale:
            return f"has more than {self.scale} decimals"
        if number >= limit:
            return f"is too large: it must be below {limit:f}"
        return None

    def event_value(self, value: object) -> Decimal:
        """Return the decimal with `scale` decimals."""
        # The default context has 28 digits.
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-self.scale), context=Context(self.precision))

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of valid values. Few programs send a number that is exact in decimals, so the string comes first."""
        digits = self.precision - self.scale
        decimals = rf"(\.[0-9]{{1,{self.scale}}})?" if self.scale else ""
        text = {"type": "string", "pattern": rf"^(?!0+(\.0+)?$)[0-9]{{1,{digits}}}{decimals}$"}
        number = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 10**digits}
        about = (
            f"A decimal above zero and below 10^{digits}, with at most {self.scale} decimals and no exponent."
        )
        return {"anyOf": [text, number], "description": about}


@dataclass(frozen=True)
class IntegerField(CommandField):
    """A whole number from `minimum` to `maximum`, as a JSON number of plain digits; the default range is Avro's long."""

    minimum: int = -(2**63)
    maximum: int = 2**63 - 1

    def error(self, value: object) -> str | None:
        """Return why a value is invalid, or None."""
        if not isinstance(value, NumberText) or not INTEGER_PATTERN.fullmatch(value):
            return "must be a whole number"
        if not self.minimum <= int(value) <= self.maximum:
            return f"must be from {self.minimum} to {self.maximum}"
        return None

    def event_value(self, value: object) -> int:
        """Return the number."""
        return int(str(value))

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of valid values."""
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}

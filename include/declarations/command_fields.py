"""The fields of a command: what a value in its JSON must be, and what it becomes in the event."""

import re
from dataclasses import dataclass
from decimal import Decimal

DECIMAL_PATTERN = re.compile(r"-?[0-9]{1,64}(\.[0-9]{1,64})?")
INTEGER_PATTERN = re.compile(r"-?[0-9]{1,19}")


class NumberText(str):
    """A JSON number as it was written: its digits and its scale are not lost to a float."""

    __slots__ = ()


@dataclass(frozen=True)
class CommandField:
    """A field of a command, named as the event's field that takes its value. Subclasses say what it may hold.

    is_required: whether the command must have it. The event's schema gives an optional one a default.
    """

    name: str

    @property
    def is_required(self) -> bool:
        """Whether a command without the field is refused."""
        return True

    def error(self, value: object) -> str | None:
        """Return what is wrong with a value as JSON has it (numbers as NumberText), or None."""
        raise NotImplementedError

    def event_value(self, value: object) -> object:
        """Return what the event holds for a value that has no error."""
        return value


@dataclass(frozen=True)
class TextField(CommandField):
    """A string that is not empty; `max_bytes` of UTF-8 or `max_characters`, where given."""

    max_bytes: int | None = None
    max_characters: int | None = None
    optional: bool = False

    @property
    def is_required(self) -> bool:
        """Whether a command without the field is refused."""
        return not self.optional

    def error(self, value: object) -> str | None:
        """Return what is wrong with a value, or None."""
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


@dataclass(frozen=True)
class DecimalField(CommandField):
    """A decimal above zero, as a string or a JSON number of plain digits, as in 5, 5.0 or 5.00.

    precision, scale: those of Avro's decimal in the event's schema.
    """

    precision: int
    scale: int

    def error(self, value: object) -> str | None:
        """Return what is wrong with a value, or None."""
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
        """Return the decimal with all its decimals."""
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-self.scale))


@dataclass(frozen=True)
class IntegerField(CommandField):
    """A whole number from `minimum` to `maximum`, as a JSON number of plain digits; the default range is Avro's long."""

    minimum: int = -(2**63)
    maximum: int = 2**63 - 1

    def error(self, value: object) -> str | None:
        """Return what is wrong with a value, or None."""
        if not isinstance(value, NumberText) or not INTEGER_PATTERN.fullmatch(value):
            return "must be a whole number"
        if not self.minimum <= int(value) <= self.maximum:
            return f"must be from {self.minimum} to {self.maximum}"
        return None

    def event_value(self, value: object) -> int:
        """Return the number."""
        return int(str(value))

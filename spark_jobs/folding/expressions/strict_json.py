"""Reads JSON objects strictly, as native columns: one object of RFC 8259 per text, unique names, and members of exact types.

Spark's `from_json` and `get_json_object` stop behind the first value, read the first or the last of repeated names, and convert
between types. Spark parses text to a variant with Jackson's default grammar, which is that of RFC 8259, and refuses repeated names.
"""

from collections.abc import Callable, Iterable
from uuid import uuid4

from pyspark.sql import Column
from pyspark.sql.functions import abs as magnitude
from pyspark.sql.functions import array as array_of
from pyspark.sql.functions import (
    coalesce,
    concat,
    exists,
    get,
    is_variant_null,
    length,
    lit,
    regexp_extract,
    regexp_replace,
    repeat,
    schema_of_variant,
    substr,
    transform,
    try_parse_json,
    try_variant_get,
    when,
)

# Spark's parser ignores what follows the first value. As an element of an array that ends with this text, the value must be followed by
# it. It is unknown before the process starts, so that no text can contain it to end the array itself.
END = uuid4().hex
NUMBER = r"^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?\z"
EXPONENT = r"^[^eE]+[eE][+-]?0*[0-9]{1,2}\z"
MOST_SHIFTED = 99
# Each quantifier of a group is possessive: Java's regular expressions recurse for any other.
STRING_OR_OTHER = r'(?:[^"0-9-]|"(?:[^"\\]|\\.)*+")*+'
NUMBER_TOKEN = rf"\G({STRING_OR_OTHER})(-?[0-9][0-9.eE+-]*+)"
PAIRED_SURROGATES = (
    r"^(?:[^\\]|\\[^u]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+\z"
)


def parsed(text: Column) -> Column:
    """Return a text as a variant for `members`; null unless its first value is JSON with unique names."""
    return try_parse_json(concat(lit("["), text, lit(f',"{END}"]')))


def members(value: Column, names: Iterable[str]) -> Column:
    """Return the members with these names as a struct of variants `0`, `1`, …; null unless the text of `parsed` is one object.

    A member that is missing is null.
    """
    names = tuple(names)
    declared = ", ".join(f"`{name.replace('`', '``')}`: variant" for name in names)
    # By number, because Spark's names do not differ by case.
    numbered = ", ".join(f"`{number}`: variant" for number in range(len(names)))
    found = try_variant_get(value, "$[0]", f"struct<{declared}>").cast(f"struct<{numbered}>")
    return when(try_variant_get(value, "$[1]", "string") == END, found)


def has_unpaired_surrogate(text: Column) -> Column:
    """Return whether a text escapes half of a surrogate pair, which is no character: Spark would read it as a question mark."""
    is_possible = text.contains(r"\ud") | text.contains(r"\uD")
    return when(is_possible, ~text.rlike(PAIRED_SURROGATES)).otherwise(lit(False))  # noqa: FBT003 - a column


def is_absent(member: Column) -> Column:
    """Return whether a member is missing or null."""
    return member.isNull() | is_variant_null(member)


def string(member: Column) -> Column:
    """Return a JSON string; null for any other value. Spark converts strings, and nothing else that JSON has, to bytes."""
    return try_variant_get(member, "$", "binary").cast("string")


def boolean(member: Column) -> Column:
    """Return a JSON boolean; null for any other value."""
    value = try_variant_get(member, "$", "boolean")
    return when(_type(member, value) == "BOOLEAN", value)


def whole_number(member: Column, spark_type: str) -> Column:
    """Return a JSON number without fraction and exponent as an int or a bigint; null for any other value."""
    value = try_variant_get(member, "$", spark_type)
    return when(_type(member, value) == "BIGINT", value)


def floating_point(member: Column, spark_type: str) -> Column:
    """Return the float or double next to a JSON number; null for any other value, and for a number beyond their range."""
    value = try_variant_get(member, "$", spark_type)
    is_number = _is_number(_type(member, value))
    return when(is_number, when(magnitude(value) < lit(float("inf")).cast(spark_type), value))


def array(member: Column, read: Callable[[Column], Column], is_nullable: bool) -> Column:
    """Return a JSON array with its items read by a function of this module; null if one of them is null, or any other value.

    is_nullable: whether items may be null.
    """
    items = try_variant_get(member, "$", "array<variant>")

    def is_refused(item: Column) -> Column:
        return read(item).isNull() & ~is_absent(item) if is_nullable else read(item).isNull()

    def value(item: Column) -> Column:
        # Spark takes no partial function.
        return read(item)

    return when(~exists(items, is_refused), transform(items, value))


def decimal(member: Column, name: str, text: Column, precision: int, scale: int) -> Column:
    """Return a JSON number, or the same in a JSON string, as a decimal; null for any other value, and if it is not exactly one.

    name: of the member in the object of this text.
    """
    json_type = _type(member, try_variant_get(member, "$", "double"))
    # A variant has a double for a number with an exponent or with more than 38 digits; it has other numbers exactly.
    number = when(json_type == "DOUBLE", _literal(text, name)).when(
        _is_number(json_type), try_variant_get(member, "$", "string")
    )
    whole = f"[1-9][0-9]{{0,{precision - scale - 1}}}|0" if precision > scale else "0"
    fitting = rf"^-?(?:{whole})(?:\.(?=[0-9])[0-9]{{0,{scale}}}0*)?\z"

    def exact(digits: Column) -> Column:
        return when(digits.rlike(fitting), digits.try_cast(f"decimal({precision},{scale})"))

    return _let(_let(coalesce(string(member), number), _without_exponent), exact)


def _let(value: Column, function: Callable[[Column], Column]) -> Column:
    """Return a function of a value that it uses several times: Spark would compute the value each time, and its code would be too long."""
    return get(transform(array_of(value), function), lit(0))


def _type(member: Column, value: Column) -> Column:
    """Return Spark's name of a member's type; null if its conversion to a scalar is: that of nested values overflows the stack."""
    return when(value.isNotNull(), schema_of_variant(member))


def _is_number(json_type: Column) -> Column:
    return ~json_type.isin("STRING", "BOOLEAN")


def _literal(text: Column, name: str) -> Column:
    """Return the digits of a number in an object's text."""
    all_strings = regexp_replace(text, NUMBER_TOKEN, '$1"$2"')
    return try_variant_get(try_parse_json(all_strings), f"$['{name}']", "string")


def _without_exponent(number: Column) -> Column:
    """Return a number with its point shifted by its exponent, if that has at most two digits."""
    sign, whole, fraction, exponent = (regexp_extract(number, NUMBER, group) for group in range(1, 5))
    zeros = repeat(lit("0"), lit(MOST_SHIFTED))
    digits = concat(zeros, whole, fraction, zeros)
    point = length(whole) + exponent.try_cast("int") + MOST_SHIFTED
    before = regexp_replace(substr(digits, lit(1), point), "^0+(?=[0-9])", "")
    shifted = concat(sign, before, lit("."), substr(digits, point + 1))
    is_shifted = number.rlike(EXPONENT) & number.rlike(NUMBER)
    return when(is_shifted, shifted).otherwise(number)

"""Members of JSON objects that a strict reader reads exactly as an event's fields, or refuses for a reason."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from include.kafka.record_schema import RecordSchema

MALFORMED, FIELD, TEXT, OTHER_TYPE = "malformed_json", "invalid_field", "invalid_text", "other type"
NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)
TIMES = {unit: {"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros")}
DECIMALS = {
    name: {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    for name, precision, scale in (("money", 18, 2), ("share", 4, 4), ("units", 28, 0))
}
ARRAYS = {
    "tags": {"type": "array", "items": "string"},
    "counts": {"type": "array", "items": "long"},
    "ratios": {"type": "array", "items": "double"},
    "flags": {"type": "array", "items": "boolean"},
    "gaps": {"type": "array", "items": ["null", "string"]},
}
PLAIN = {
    "text": "string",
    "flag": "boolean",
    "whole": "int",
    "count": "long",
    "single": "float",
    "ratio": "double",
}
FIELDS: dict[str, Any] = PLAIN | {"micros": TIMES["micros"]} | DECIMALS | ARRAYS
SAMPLE = RecordSchema.parse(
    json.dumps(
        {
            "type": "record",
            "name": "Sample",
            "foldlake.json": {"kind": "sample"},
            "fields": [
                {"name": "occurredOn", "type": TIMES["millis"], "foldlake.json": "at"},
                # Differs from another member only by case.
                {"name": "other", "type": ["null", "string"], "foldlake.json": "Text"},
                *({"name": name, "type": ["null", one]} for name, one in FIELDS.items()),
            ],
        }
    ),
    "test",
)


def sample(members: str) -> str:
    """Return an object with the members that every event has, and these."""
    return '{"kind":"sample","at":"2026-11-24T12:00:00Z",' + members + "}"


# The members beside those of every event -> the reason.
REFUSED: tuple[tuple[str, str], ...] = (
    # Repeated names.
    ('"text":"a","text":"a"', MALFORMED),
    ('"money":"1.5","money":"2,5"', MALFORMED),
    ('"kind":"other"', MALFORMED),
    ('"more":1,"more":2', MALFORMED),
    ('"more":{"a":1,"a":2}', MALFORMED),
    ('"more":[{"b":[{"a":1,"a":2}]}]', MALFORMED),
    (r'"text":"a","te\u0078t":"b"', MALFORMED),
    # What is no JSON.
    ('"text":"a",', MALFORMED),
    ('"tags":["a",]', MALFORMED),
    ('"tags":[,"a"]', MALFORMED),
    ('"tags":["a"', MALFORMED),
    ('"tags":["a"}', MALFORMED),
    ('"text"', MALFORMED),
    ('"text":', MALFORMED),
    ('"text":a', MALFORMED),
    ("\"text\":'a'", MALFORMED),
    ('"text":"a', MALFORMED),
    ('"text":"\t"', MALFORMED),
    ('"text":"\n"', MALFORMED),
    ('"text":"\0"', MALFORMED),
    (r'"text":"\q"', MALFORMED),
    (r'"text":"\'"', MALFORMED),
    (r'"text":"\x41"', MALFORMED),
    (r'"text":"\u12"', MALFORMED),
    (r'"text":"\u12G4"', MALFORMED),
    (r'"text":\u0022a\u0022', MALFORMED),
    ('"flag":True', MALFORMED),
    ('"flag":tru', MALFORMED),
    ('"flag":truee', MALFORMED),
    ('"text":undefined', MALFORMED),
    ('"text":/* no */"a"', MALFORMED),
    ('"text":"a"\v', MALFORMED),
    *(
        (f'"ratio":{number}', MALFORMED)
        for number in (
            *(
                "NaN",
                "Infinity",
                "-Infinity",
                "+1",
                "01",
                "-01",
                "1.",
                ".5",
                "-",
                "--1",
                "1e",
                "1e+",
                "1.e1",
                "1,5",
            ),
            *("0x1F", "1_000", "1f", "1d", "1 000", "\uff11", "\u0661", "1e1.5", "-.5"),
        )
    ),
    # Half a surrogate pair.
    (r'"text":"\ud83d"', TEXT),
    (r'"text":"\ude00"', TEXT),
    (r'"text":"\ude00\ud83d"', TEXT),
    (r'"text":"\ud83d\ud83d\ude00"', TEXT),
    (r'"text":"\uD83D\\ude00"', TEXT),
    (r'"more":{"\udead":1}', TEXT),
    # Other types.
    *((f'"text":{value}', FIELD) for value in ("5", "1.10", "true", "false", '{"a":1}', '["a"]', "[]", "{}")),
    *((f'"flag":{value}', FIELD) for value in ('"true"', "1", "0", '"yes"', "[true]", "{}")),
    *(
        (f'"whole":{value}', FIELD)
        for value in ('"5"', "5.0", "5e0", "true", "2147483648", "-2147483649", "[5]")
    ),
    *((f'"count":{value}', FIELD) for value in ('"5"', "5.0", "5e0", "9223372036854775808", "1e400", "{}")),
    *((f'"single":{value}', FIELD) for value in ('"5"', "1e39", "-1e39", "1e400", "true")),
    *(
        (f'"ratio":{value}', FIELD)
        for value in (
            '"5"',
            '"NaN"',
            '"-INF"',
            '"Infinity"',
            "1e400",
            "-1e400",
            "9" * 400,
            "true",
            "[1]",
            "{}",
        )
    ),
    *(
        (f'"money":{value}', FIELD)
        for value in (
            *(
                "5.255",
                "5.250000000000000000001",
                f"5.25{'0' * 60}1",
                "5.25000000000000000000000000001e0",
                "1e-3",
                "1e-30",
            ),
            *("1e16", "1e400", "1e99999999999", "9007199254740993e4", "true", "[5]", "{}"),
            *(
                '"5,25"',
                '" 5"',
                '"5 "',
                '"5\\n"',
                '"+5"',
                '"05"',
                '"5."',
                '".5"',
                '""',
                '"NaN"',
                '"0x5"',
                '"1e"',
                '"\u0665"',
            ),
        )
    ),
    *((f'"share":{value}', FIELD) for value in ("1", "0.12345", "-1.0")),
    *(
        (f'"micros":{value}', FIELD)
        for value in (
            *(
                '"12:00"',
                '"2026-02-30T00:00:00Z"',
                '"2026-11-24T12:00:00Z\\n"',
                '" 2026-11-24T12:00:00Z"',
                '"2026-11-24"',
            ),
            *(
                '"1795521600125"',
                "1795521600125.5",
                "1.7e12",
                "true",
                '["2026-11-24T12:00:00Z"]',
                '"now"',
                '"2026-11-24T25:00:00Z"',
            ),
        )
    ),
    # At every depth.
    *(
        (f'"tags":{value}', FIELD)
        for value in ('["a",null]', "[null]", '["a",1]', '["a",["b"]]', '["a",{}]', '"a"', "{}", "5")
    ),
    *(
        (f'"counts":{value}', FIELD)
        for value in ("[1,null]", "[1,2.0]", '["1"]', "[9223372036854775808]", "[[1]]", "1")
    ),
    *((f'"ratios":{value}', FIELD) for value in ("[1,null]", "[1e400]", '["NaN"]', "[true]")),
    *((f'"flags":{value}', FIELD) for value in ("[null]", "[0]", '["true"]')),
    *((f'"gaps":{value}', FIELD) for value in ("[5]", "[[null]]", "[null,{}]")),
)
# The field -> the literals of its member, and the value that is read.
READ: tuple[tuple[str, str, object], ...] = (
    ("text", "null", None),
    ("text", '""', ""),
    ("text", '"1.10"', "1.10"),
    ("text", '"true"', "true"),
    ("text", '" a \u2028\ufeff\x7f"', " a \u2028\ufeff\x7f"),
    ("text", r'"\"\\\/\b\f\n\r\t\u0041\u0000"', '"\\/\b\f\n\r\tA\0'),
    ("text", r'"\ud83d\ude00\uD83D\uDE00"', "\U0001f600\U0001f600"),
    ("text", r'"\\ud83d"', "\\ud83d"),
    ("text", '"\U0001f600"', "\U0001f600"),
    ("text", '"{\\"a\\":1}"', '{"a":1}'),
    ("flag", "true", True),
    ("flag", "false", False),
    ("whole", "-2147483648", -(2**31)),
    ("whole", "-0", 0),
    ("count", "9223372036854775807", 2**63 - 1),
    ("count", "-9223372036854775808", -(2**63)),
    ("ratio", "5", 5.0),
    ("ratio", "0.1", 0.1),
    ("ratio", "0.12345678901234567", 0.12345678901234567),
    ("ratio", "9007199254740993", 9007199254740992.0),
    ("ratio", "123456789012345678901234567890.5", 123456789012345678901234567890.5),
    ("ratio", "1.7976931348623157e308", 1.7976931348623157e308),
    ("ratio", "5E-324", 5e-324),
    ("ratio", "1e-400", 0.0),
    ("single", "0.5", 0.5),
    ("single", "3.4028234e38", 3.4028234663852886e38),
    ("money", "5", Decimal("5.00")),
    ("money", "-5.2", Decimal("-5.20")),
    ("money", '"5.25"', Decimal("5.25")),
    ("money", "9007199254740993.01", Decimal("9007199254740993.01")),
    ("money", f"5.25{'0' * 60}", Decimal("5.25")),
    ("money", "1e2", Decimal("100.00")),
    ("money", "1.23456789E7", Decimal("12345678.90")),
    ("money", "9007199254740993e0", Decimal("9007199254740993.00")),
    ("money", "900719925474099301e-2", Decimal("9007199254740993.01")),
    ("money", '"-1.5E+1"', Decimal("-15.00")),
    ("money", "0e5", Decimal("0.00")),
    ("share", "-0.1250", Decimal("-0.1250")),
    ("share", "1.25e-1", Decimal("0.1250")),
    ("units", "9999999999999999999999999999", Decimal(10**28 - 1)),
    ("units", "1e27", Decimal(10**27)),
    ("units", "5.0", Decimal(5)),
    ("micros", '"2026-11-24T12:00:00.123456Z"', NOON.replace(microsecond=123456)),
    ("micros", '"2026-11-24T12:00:00.123456789Z"', NOON.replace(microsecond=123456)),
    ("micros", '"2026-11-24 13:00:00+01:00"', NOON),
    ("micros", "1795521600125", NOON.replace(microsecond=125000)),
    ("tags", "[]", []),
    ("tags", '["a","1",""]', ["a", "1", ""]),
    ("counts", "[1,-1]", [1, -1]),
    ("ratios", "[1,0.5,1e3]", [1.0, 0.5, 1000.0]),
    ("flags", "[true,false]", [True, False]),
    ("gaps", '["a",null]', ["a", None]),
    ("gaps", "[null]", [None]),
)

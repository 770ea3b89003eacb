"""Keys that are hard to carry: in paths and queries, in pages, in texts of other formats."""

import random

from include.kafka.wire_format import MAX_KEY_BYTES

HARD_KEYS = (
    "/x", "//x", "x/", "x//y", "/", "//", "a\nb", "a\n", "\n", "\r\n", "\t", "\x00", "a\x00b", "\x1b[31m", "\x7f", "\x85", "\u2028",
    ".", "..", "...", "a/.", "a/..", "../b", "a/../b", "./b", "a/./b", "%", "%2F", "%2e%2e", "%zz", "%ff", "%00", "100%", "+", "a+b",
    "a b", " ", " a", "a ", "?", "a?b=c", "#", "a#b", "&", "a&b", "=", ";", ":", "@", "\\", "a\\b", "|", "^", "`", "{}", "[]", "<b>",
    "<script>alert(1)</script>", '"', "'", "${x}", "{{ 7*7 }}", "é", "e\u0301", "\u00c5", "\u212b", "ß", "\u0130", "日本", "🙂", "\u202e",
    "\ufeff", "\ufffd", "\uffff", "\U0010ffff", "-", "--version", "key", "null", "0", "-0", "1e5", "records", "*", "~",
    "x" * MAX_KEY_BYTES, "é" * (MAX_KEY_BYTES // 2), "🙂" * (MAX_KEY_BYTES // 4), "/" * MAX_KEY_BYTES, "\x00" * MAX_KEY_BYTES,
)  # fmt: skip
# From ranges in which something is special, and from all others.
RANGES = (
    (0, 0x20),
    (0x20, 0x7F),
    (0x7F, 0x100),
    (0x300, 0x370),
    (0x2000, 0x2070),
    (0xE000, 0x10000),
    (0x10000, 0x110000),
)


def random_keys(seed: int, number: int) -> list[str]:
    """Return keys of 1 to 60 characters of any kind but surrogates, the same for the same seed."""
    chance = random.Random(seed)
    return [
        "".join(chr(chance.randrange(*chance.choice(RANGES))) for _ in range(chance.randint(1, 60)))
        for _ in range(number)
    ]

"""The output of `./foldlake dead-letters`."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cli.dead_letters import preview, to_json, to_lines
from include.kafka.dead_letters import FOREIGN, DeadLetter, DeadLetters, RecordDigest

TEXT = DeadLetter(
    datetime(2026, 11, 21, 6, 26, 13, 500_000, UTC),
    "wrong_magic",
    "balance",
    1,
    36135,
    b"you",
    b"not an event",
)
NULL = replace(TEXT, reason="null_value", source_offset=36136, value=None)
BYTES = replace(TEXT, reason="wrong_magic", source_partition=0, source_offset=7, key=None, value=b"\x00\xff")

REFERENCE = replace(TEXT, source_offset=36137, value=None, value_digest=RecordDigest(1_048_430, "5f" * 32))
OF_ANOTHER_PROGRAM = replace(TEXT, reason=FOREIGN, source_topic="", source_partition=-1, source_offset=-1)


def test_each_dead_letter_is_one_line_and_the_last_line_counts_them_by_reason() -> None:
    assert to_lines(DeadLetters("balance", 40, (TEXT, NULL, BYTES))) == [
        "balance: the newest 3 of 40 dead letters",
        "when (UTC)           reason       partition/offset  key    bytes  value",
        '2026-11-21 06:26:13  wrong_magic  1/36135           "you"  12     "not an event"',
        '2026-11-21 06:26:13  null_value   1/36136           "you"         null',
        "2026-11-21 06:26:13  wrong_magic  0/7               null   2      0x00ff",
        "by reason: 2 wrong_magic, 1 null_value",
    ]


def test_a_reference_shows_the_size_and_digest_of_its_record_and_a_foreign_record_no_origin() -> None:
    assert to_lines(DeadLetters("balance", 2, (REFERENCE, OF_ANOTHER_PROGRAM)))[2:4] == [
        '2026-11-21 06:26:13  wrong_magic        1/36137           "you"  1048430  sha256 5f5f5f5f…',
        '2026-11-21 06:26:13  not_a_dead_letter                    "you"  12       "not an event"',
    ]


def test_a_topic_without_dead_letters_is_reported_as_such() -> None:
    assert to_lines(DeadLetters("balance", 0, ())) == ["balance: no dead letters"]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (None, "null"),
        (b"", '""'),
        ("Zoë".encode(), '"Zoë"'),
        (b"tab\t", "0x74616209"),
        (b"\xff\xfe", "0xfffe"),
        (b"12345678901", '"123456789…"'),
        (bytes(9), "0x0000000…"),
    ],
)
def test_a_preview_is_short_and_text_if_possible(content: bytes | None, shown: str) -> None:
    assert preview(content, 10) == shown


def test_json_output_has_complete_keys_and_values() -> None:
    assert to_json(DeadLetters("balance", 1, (BYTES,))) == {
        "source_topic": "balance",
        "total": 1,
        "by_reason": {"wrong_magic": 1},
        "newest": [
            {
                "written_at": "2026-11-21T06:26:13.500000+00:00",
                "reason": "wrong_magic",
                "failure": "",
                "source_partition": 0,
                "source_offset": 7,
                "key_hex": None,
                "value_hex": "00ff",
                "key_digest": None,
                "value_digest": None,
            }
        ],
    }

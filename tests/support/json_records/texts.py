"""Texts that a strict reader of JSON reads, or refuses for a reason, as RFC 8259 has it."""

from tests.support.json_records.members import FIELD, MALFORMED, OTHER_TYPE, READ, REFUSED, TEXT, sample

WHOLE = sample('"text":"a"')
NESTED = 900
# The text of the whole record -> the reason for which it is refused; None: it is read.
TEXTS: tuple[tuple[str | bytes, str | None], ...] = (
    (WHOLE, None),
    (" \t\r\n" + WHOLE + "\n\r\t ", None),
    (WHOLE + WHOLE, MALFORMED),
    (WHOLE + "\n" + WHOLE, MALFORMED),
    (WHOLE + "," + WHOLE, MALFORMED),
    (WHOLE + " trailing", MALFORMED),
    (WHOLE + "}", MALFORMED),
    (WHOLE + "]", MALFORMED),
    (WHOLE + "]{", MALFORMED),
    (WHOLE + ',"x"] trailing', MALFORMED),
    (WHOLE + ",", MALFORMED),
    (WHOLE + "\0", MALFORMED),
    (WHOLE + "#", MALFORMED),
    (WHOLE + "// comment", MALFORMED),
    (WHOLE + "\xa0", MALFORMED),
    ("\0" + WHOLE, MALFORMED),
    ("\ufeff" + WHOLE, MALFORMED),
    ("," + WHOLE, MALFORMED),
    ("/* comment */" + WHOLE, MALFORMED),
    ("[" + WHOLE + "]", MALFORMED),
    ("[" + WHOLE, MALFORMED),
    ("", MALFORMED),
    (" ", MALFORMED),
    ("null", MALFORMED),
    ("true", MALFORMED),
    ("5", MALFORMED),
    ('"text"', MALFORMED),
    ("[]", MALFORMED),
    ("{", MALFORMED),
    ("}", MALFORMED),
    (WHOLE[:-1], MALFORMED),
    (WHOLE.replace('"', "'"), MALFORMED),
    (WHOLE.replace('"kind"', "kind"), MALFORMED),
    (WHOLE.replace(":", "", 1), MALFORMED),
    (WHOLE.replace(":", "=", 1), MALFORMED),
    (WHOLE.replace(",", "", 1), MALFORMED),
    (WHOLE.replace(",", ",,", 1), MALFORMED),
    ("{}", OTHER_TYPE),
    (WHOLE.replace("sample", "other"), OTHER_TYPE),
    (WHOLE.replace('"sample"', "5"), OTHER_TYPE),
    (WHOLE.replace('"sample"', "null"), OTHER_TYPE),
    (WHOLE.encode() + b"\xff", TEXT),
    (WHOLE.replace("a", "\xe4").encode("latin-1"), TEXT),
    (WHOLE.encode("utf-16"), TEXT),
    (b'{"text":"\xed\xa0\x80"}', TEXT),
    (b'{"text":"\xc0\x80"}', TEXT),
    (sample(f'"more":{"[" * NESTED}{"]" * NESTED}'), None),
    (sample(f'"more":{"[" * 5_000}{"]" * 5_000}'), MALFORMED),
    ("[" * 100_000, MALFORMED),
    ('{"a":' * 100_000, MALFORMED),
    (sample(f'"text":{"[" * NESTED}{"]" * NESTED}'), FIELD),
    (sample(f'"ratio":{"[" * NESTED}{"]" * NESTED}'), FIELD),
    (sample(f'"money":{"[" * NESTED}{"]" * NESTED}'), FIELD),
    (sample(f'"tags":{"[" * NESTED}{"]" * NESTED}'), FIELD),
    (sample('"tags":[' + '{"a":' * NESTED + "1" + "}" * NESTED + "]"), FIELD),
    (sample(f'"more":{"9" * 2_000}'), MALFORMED),
    (sample(f'"more":"{"x" * 1_000_000}\\ud83d\\ude00{"y" * 100_000}"'), None),
    (sample(f'"more":[{"1," * 100_000}1]'), None),
)
BOTH_CASES = sample('"text":"a","Text":"b"')
# A number with an exponent is found in the text, whatever precedes and follows it.
AMONG_OTHERS = sample(r'"more":["-1e9","\"money\":7e0",{"money":8e0}],"money":9e0,"last":-1.5')
CASES: dict[str | bytes, str | None] = (
    dict(TEXTS)
    | {sample(members): reason for members, reason in REFUSED}
    | {sample(f'"{name}":{literal}'): None for name, literal, _ in READ}
    | {BOTH_CASES: None, AMONG_OTHERS: None}
)

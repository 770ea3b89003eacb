"""The cursor of a listing of a whole read model."""

import pytest

from query_api.lookup.model_pages import Cursor, InvalidCursorError
from tests.support.http.record_keys import HARD_KEYS, random_keys


def test_a_cursor_is_read_back_from_its_text() -> None:
    for key in ("", *HARD_KEYS, *random_keys(1, 100), "x" * 4096):
        cursor = Cursor(3, 2, key.encode())

        assert Cursor.parse(cursor.text) == cursor
        assert cursor.text.replace("-", "").replace("_", "").replace(".", "").isalnum()


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "1.2.3.4", "x.0.", "1.x.", "-1.0.", "1.-1.", "1.0.=", "1.0.%", "01.0.", " 1.0.", "1.0.A",
        "1.0._w", "1.0.____", "\u0661.0.", "1.0.\n", "1.0.Nw\n", f"{'9' * 5000}.0.", f"1.{'9' * 10}.", f"1.0.{'A' * 60_000}"]
)  # fmt: skip
def test_another_text_is_no_cursor(text: str) -> None:
    with pytest.raises(InvalidCursorError):
        Cursor.parse(text)

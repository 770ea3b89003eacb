"""The cursor of a listing of a whole read model."""

import pytest

from query_api.lookup.model_pages import Cursor, InvalidCursorError


@pytest.mark.parametrize("key", [b"", b"7", "customer 1/é".encode(), bytes(range(256))])
def test_a_cursor_is_read_back_from_its_text(key: bytes) -> None:
    cursor = Cursor(3, 2, key)

    assert Cursor.parse(cursor.text) == cursor
    assert cursor.text.replace("-", "").replace("_", "").replace(".", "").isalnum()


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "1.2.3.4", "x.0.", "1.x.", "-1.0.", "1.-1.", "1.0.=", "1.0.%", "01.0.", " 1.0."]
)
def test_another_text_is_no_cursor(text: str) -> None:
    with pytest.raises(InvalidCursorError):
        Cursor.parse(text)

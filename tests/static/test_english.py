"""The pages have short sentences, and the words of the house: `python -m tests.support.documentation.english` prints what does not."""

from pathlib import Path

import pytest

from include.settings import CHECKOUT
from tests.support.documentation.english import LONG_SHARE, TOO_LONG, findings, pages, sentences


def name_of(page: Path) -> str:
    return page.relative_to(CHECKOUT).as_posix()


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_a_page_is_in_plain_english(page: Path) -> None:
    found = findings(page)
    printed = "\n".join(("Write these anew:", *found))

    assert findings(page, longest=TOO_LONG) == [], printed
    assert len(found) <= LONG_SHARE * len(list(sentences(page.read_text(encoding="utf-8")))), printed


def test_code_cells_and_items_are_not_one_sentence() -> None:
    text = "# A `b c d` e\nOne two. Three\nfour.\n\n```sh\nx. Y\n```\n- Five.\n- Six [seven](a.md).\n\n| a | b c |\n"

    assert list(sentences(text)) == [
        (1, "A X e"),
        (2, "One two."),
        (2, "Three four."),
        (8, "Five."),
        (9, "Six seven."),
        (11, "a"),
        (11, "b c"),
    ]

"""The code that serves every read model knows none of them: the words of `balance` stand in its own package only."""

import re

from include.settings import CHECKOUT

WORDS = re.compile("(?<!re)balance|customer|amount", re.IGNORECASE)  # Kafka rebalances groups
OWN = CHECKOUT / "include" / "read_models" / "balance"


def test_words_of_the_first_read_model_stand_in_its_package_only() -> None:
    files = [path for room in ("include", "query_api") for path in (CHECKOUT / room).rglob("*.py")]
    found = [
        f"{path.relative_to(CHECKOUT)}:{number}: {line.strip()}"
        for path in files
        if not path.is_relative_to(OWN)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if WORDS.search(line)
    ]

    assert len(files) > 100
    assert found == []

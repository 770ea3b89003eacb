"""Generic code is independent of the read models: the terms of `balance` appear only in its own package, and in other systems."""

import re

from include.settings import CHECKOUT

TERMS = re.compile(
    "(?<!re)balance(?!d)|customer|amount", re.IGNORECASE
)  # Kafka rebalances groups; a pace is balanced
OWN = CHECKOUT / "include" / "read_models" / "balance"
SYSTEMS = CHECKOUT / "demo" / "systems"


def test_terms_of_the_first_read_model_appear_only_in_its_package() -> None:
    files = [path for package in ("include", "query_api") for path in (CHECKOUT / package).rglob("*.py")]
    found = [
        f"{path.relative_to(CHECKOUT)}:{number}: {line.strip()}"
        for path in files
        if not path.is_relative_to(OWN) and not path.is_relative_to(SYSTEMS)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if TERMS.search(line)
    ]

    assert len(files) > 100
    assert found == []

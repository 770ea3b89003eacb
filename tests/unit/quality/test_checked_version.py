"""A check of a version that does not exist, or whose stores are removed, is refused before Spark starts."""

from dataclasses import replace

import pytest

from include.errors import UnknownReadModelError
from include.quality.check import CheckRequest, Mode, QualityError, StoreName, checked_version
from include.versions.version_record import ReadModelVersions, Stage, first_version

FIRST = first_version("balance", 1)
RECORD: ReadModelVersions = replace(
    FIRST,
    versions=(
        replace(FIRST.versions[0], stage=Stage.RETIRED),
        replace(FIRST.versions[0], number=2),
    ),
)


def request(version: int | None) -> CheckRequest:
    return CheckRequest("balance", (StoreName.LAKE,), Mode.FULL, "run", version)


def test_the_version_is_the_live_one_or_the_one_that_is_named() -> None:
    assert checked_version(RECORD, request(None)).number == 2
    assert checked_version(RECORD, request(2)).number == 2


def test_another_version_is_refused_with_those_that_exist() -> None:
    with pytest.raises(
        QualityError, match=r"balance has no version 99; its versions: 1 \(retired\), 2 \(live\)"
    ):
        checked_version(RECORD, request(99))
    with pytest.raises(QualityError, match="balance v1 is retired: its stores are removed"):
        checked_version(RECORD, request(1))
    with pytest.raises(UnknownReadModelError, match="start the stream driver"):
        checked_version(None, request(None))

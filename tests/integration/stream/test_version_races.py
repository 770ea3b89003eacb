"""Concurrent changes of the version registry: one of two promotions fails with an error; other changes are retried.

A version that is abandoned while its catch-up starts leaves nothing.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from include.rebuild.retirement import abandon_version
from include.rebuild.version_cleanup import find_leftovers
from include.settings import Settings
from include.versions.registry import VersionRegistry, change, change_live
from include.versions.transitions import (
    PromotionLostError,
    VersionAbandonedError,
    hand_over,
    promote,
    register,
    retire,
    roll_back,
)
from include.versions.version_record import ReadModelVersions, first_version
from spark_jobs import catch_up
from tests.support.declarations.renamed_balance import renamed_balance
from tests.support.stream_process import make_topics
from tests.support.waiting import wait_until

NOW = datetime.now(UTC)
LATER = NOW + timedelta(hours=1)


@pytest.fixture
def registry(stream_stack: Settings, request: pytest.FixtureRequest) -> Iterator[VersionRegistry]:
    registry = VersionRegistry(stream_stack.kafka_connection)
    registry.ensure_topic()
    name = request.node.name
    record = first_version(name, 1)
    for number in (2, 3):
        record = register(record, run_id=f"r{number}", reason="", fold_revision=1, now=NOW)
        record = promote(hand_over(record, number), number, now=NOW, retire_live_after=LATER)
    registry.compare_and_set(record, expected_revision=0)
    # The broker acknowledges a commit before readers see it.
    wait_until(lambda: name in registry.read(), "the record is visible")
    yield registry
    registry.close()


def test_the_later_of_two_concurrent_rollbacks_loses(
    registry: VersionRegistry, stream_stack: Settings, request: pytest.FixtureRequest
) -> None:
    name, other = request.node.name, VersionRegistry(stream_stack.kafka_connection)
    attempts: list[ReadModelVersions] = []

    def with_concurrent_change(record: ReadModelVersions) -> ReadModelVersions:
        if not attempts:
            attempts.append(record)
            change_live(other, name, partial(roll_back, number=1, now=NOW, retire_live_after=LATER))
        return roll_back(record, 2, now=NOW, retire_live_after=LATER)

    with pytest.raises(PromotionLostError, match=r"v1 of .* replaced v3 in the meantime"):
        change_live(registry, name, with_concurrent_change)
    live = registry.read()[name].live
    other.close()
    assert live is not None
    assert live.number == 1


def test_promotion_is_retried_after_an_unrelated_change(
    registry: VersionRegistry, stream_stack: Settings, request: pytest.FixtureRequest
) -> None:
    name, other = request.node.name, VersionRegistry(stream_stack.kafka_connection)
    attempts: list[ReadModelVersions] = []

    def with_concurrent_change(record: ReadModelVersions) -> ReadModelVersions:
        if not attempts:
            attempts.append(record)
            change(other, name, partial(retire, number=1))
        return roll_back(record, 2, now=NOW, retire_live_after=LATER)

    record = change_live(registry, name, with_concurrent_change)
    other.close()
    assert [(v.number, v.stage.value) for v in record.versions] == [
        (1, "retired"),
        (2, "live"),
        (3, "previous"),
    ]


@pytest.fixture
def building(stream_stack: Settings, tmp_path: Path) -> Settings:
    """Settings with a read model of which a rebuild has registered v2."""
    (tmp_path / "raced.py").write_text(renamed_balance("raced", source_topic="raced"))
    make_topics(stream_stack, "raced")
    with VersionRegistry(stream_stack.kafka_connection) as registry:
        registry.ensure_topic()
        record = register(first_version("raced", 1), run_id="r2", reason="", fold_revision=1, now=NOW)
        registry.compare_and_set(record, expected_revision=0)
        wait_until(lambda: "raced" in registry.read(), "the record is visible")
    return stream_stack.changed(read_models_dir=tmp_path)


def test_a_catch_up_whose_version_is_abandoned_while_spark_starts_creates_nothing(
    building: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def abandoned_meanwhile(*_: object) -> MagicMock:
        abandon_version(building, "raced", 2)
        # Nothing uses the session: the version has ended.
        return MagicMock()

    monkeypatch.setattr(catch_up, "spark_session", abandoned_meanwhile)

    with pytest.raises(VersionAbandonedError, match="v2 of raced was abandoned"):
        catch_up.catch_up(building, "raced", 2)

    assert find_leftovers(building, "raced", 2) == []

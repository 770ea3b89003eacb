"""Of two concurrent writers of the version registry, one succeeds and the other gets an error."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from include.errors import RevisionConflictError
from include.settings import Settings
from include.versions import registry as registry_module
from include.versions.registry import VersionRegistry
from include.versions.version_record import first_version

MODEL = "registry-test"


@pytest.fixture(scope="module")
def registries(stream_stack: Settings) -> Iterator[tuple[VersionRegistry, VersionRegistry]]:
    pair = (
        VersionRegistry(stream_stack.kafka_connection),
        VersionRegistry(stream_stack.kafka_connection),
    )
    pair[0].ensure_topic()
    yield pair
    for registry in pair:
        registry.close()


def test_record_is_read_as_it_was_appended(registries: tuple[VersionRegistry, VersionRegistry]) -> None:
    writer, reader = registries
    appended = writer.compare_and_set(first_version(MODEL, 1), expected_revision=0)
    assert appended.revision == 1
    assert reader.read()[MODEL] == appended


def test_change_of_an_older_revision_is_refused(registries: tuple[VersionRegistry, VersionRegistry]) -> None:
    first, second = registries
    record = first.read()[MODEL]
    first.compare_and_set(record, expected_revision=record.revision)
    with pytest.raises(RevisionConflictError, match="Read it again"):
        second.compare_and_set(record, expected_revision=record.revision)
    assert second.read()[MODEL].revision == record.revision + 1


def test_one_of_several_concurrent_changes_wins_each_round(
    registries: tuple[VersionRegistry, VersionRegistry],
) -> None:
    def attempt(registry: VersionRegistry, reason: str) -> bool:
        record = registry.read()[MODEL]
        versions = tuple(replace(version, reason=reason) for version in record.versions)
        try:
            registry.compare_and_set(replace(record, versions=versions), record.revision)
        except RevisionConflictError:
            return False
        return True

    before = registries[0].read()[MODEL].revision
    won = 0
    with ThreadPoolExecutor(2) as pool:
        for number in range(5):
            rounds = [
                pool.submit(attempt, registry, f"{number}/{i}") for i, registry in enumerate(registries)
            ]
            won += sum(future.result() for future in rounds)
    assert won >= 5
    assert registries[1].read()[MODEL].revision == before + won


class ProducerWithFailedCommits(Producer):
    """A producer whose first commit is reported as failed, after it was made or instead of it; later ones are as usual."""

    failures: list[str]

    def commit_transaction(self, timeout: float = -1) -> None:
        """Commit, unless the next failure says otherwise."""
        failure = self.failures.pop() if self.failures else "none"
        if failure != "lost request":
            super().commit_transaction(timeout)
        if failure != "none":
            raise KafkaException(KafkaError(KafkaError.UNKNOWN, "EndTxn commit failed"))


@pytest.mark.parametrize("failure", ["lost response", "lost request"])
def test_change_whose_commit_is_reported_as_failed_is_made_once(
    registries: tuple[VersionRegistry, VersionRegistry], monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    ProducerWithFailedCommits.failures = [failure]
    monkeypatch.setattr(registry_module, "Producer", ProducerWithFailedCommits)
    writer, reader = registries
    record = writer.read()[MODEL]
    appended = writer.compare_and_set(record, record.revision)
    assert not ProducerWithFailedCommits.failures
    assert appended.revision == record.revision + 1
    assert reader.read()[MODEL] == appended

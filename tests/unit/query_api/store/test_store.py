"""The local store: values and positions together, older records passed over, damage noticed."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from query_api.errors import StoreDamagedError, StoreMissingError
from query_api.store.base import Binding, Change, HeldRecord, Position
from query_api.store.lmdb.integrity import damage, read_everything
from query_api.store.lmdb.reader import LmdbReader
from query_api.store.lmdb.writer import LmdbWriter

PARTITIONS = 2
MAP_SIZE_BYTES = 1024 * 1024
AT = Position(next_offset=5, as_of=1.0, folded={0: 7, 1: 2})


def reader_of(path: Path) -> LmdbReader:
    return LmdbReader(path, map_size_bytes=MAP_SIZE_BYTES, partitions=PARTITIONS)


class ReaderElsewhere:
    """A reader in another process, open all the time: LMDB has one environment a process."""

    def __init__(self, path: Path, pool: ProcessPoolExecutor) -> None:
        self._path = path
        self._pool = pool
        self.positions()

    def get(self, partition: int, key: bytes) -> HeldRecord | None:
        """Return a record."""
        record: HeldRecord | None = self._pool.submit(_ask, self._path, "get", partition, key).result()
        return record

    def positions(self) -> dict[int, Position]:
        """Return all positions."""
        positions: dict[int, Position] = self._pool.submit(_ask, self._path, "positions").result()
        return positions

    def schema_text(self, schema_id: int) -> str | None:
        """Return a schema."""
        text: str | None = self._pool.submit(_ask, self._path, "schema_text", schema_id).result()
        return text


_open_elsewhere: dict[Path, LmdbReader] = {}


def _ask(path: Path, method: str, *arguments: Any) -> Any:  # noqa: ANN401 - whatever the reader's methods take
    if path not in _open_elsewhere:
        _open_elsewhere[path] = reader_of(path)
    return getattr(_open_elsewhere[path], method)(*arguments)


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        yield executor


@pytest.fixture
def reader(store: LmdbWriter, path: Path, pool: ProcessPoolExecutor) -> ReaderElsewhere:
    assert store.positions() == {}
    return ReaderElsewhere(path, pool)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "balance.v1"


@pytest.fixture
def store(path: Path) -> Iterator[LmdbWriter]:
    writer = LmdbWriter(path, map_size_bytes=MAP_SIZE_BYTES, partitions=PARTITIONS)
    yield writer
    writer.close()


def test_records_positions_and_schemas_become_visible_together(
    store: LmdbWriter, reader: ReaderElsewhere
) -> None:
    store.commit({1: [Change(b"k", 3, 4, b"value")]}, {1: AT}, {9: "{}"})

    assert reader.get(1, b"k") == HeldRecord(b"value", 3, 4)
    assert reader.get(0, b"k") is None
    assert reader.positions() == {1: AT} == store.positions()
    assert reader.schema_text(9) == "{}"
    assert reader.schema_text(8) is None


@pytest.mark.parametrize("in_one_commit", [True, False])
@pytest.mark.parametrize(
    ("changes", "held"),
    [
        ([Change(b"k", 2, 0, b"two"), Change(b"k", 1, 1, b"one")], HeldRecord(b"two", 2, 0)),
        ([Change(b"k", 2, 0, b"two"), Change(b"k", 2, 1, b"two again")], HeldRecord(b"two again", 2, 1)),
        ([Change(b"k", 2, 0, b"two"), Change(b"k", 3, 1, b"three")], HeldRecord(b"three", 3, 1)),
        ([Change(b"k", 2, 0, b"two"), Change(b"k", 0, 1, None)], None),
        (
            [Change(b"k", 2, 0, b"two"), Change(b"k", 0, 1, None), Change(b"k", 1, 2, b"anew")],
            HeldRecord(b"anew", 1, 2),
        ),
    ],
)
def test_record_with_fewer_events_is_passed_over_and_a_deletion_starts_anew(
    store: LmdbWriter, changes: list[Change], held: HeldRecord | None, *, in_one_commit: bool
) -> None:
    batches = [changes] if in_one_commit else [[change] for change in changes]

    for batch in batches:
        store.commit({0: [Change(b"other", 1, 0, b"o"), *batch]}, {0: AT}, {})

    assert store.get(0, b"k") == held


def test_map_grows_when_it_is_full_and_readers_follow(store: LmdbWriter, reader: ReaderElsewhere) -> None:
    for number in range(8):
        key = b"key %d" % number
        store.commit({0: [Change(key, 1, number, bytes(MAP_SIZE_BYTES // 4))]}, {0: AT}, {})

    assert all(reader.get(0, b"key %d" % number) is not None for number in range(8))
    assert store.record_count() == 8


def test_forgotten_partition_is_empty_and_can_be_filled_again(
    store: LmdbWriter, reader: ReaderElsewhere
) -> None:
    store.commit({0: [Change(b"k", 1, 0, b"v")], 1: [Change(b"k", 1, 0, b"v")]}, {0: AT, 1: AT}, {})

    store.forget(0)

    assert reader.get(0, b"k") is None
    assert reader.get(1, b"k") is not None
    assert set(reader.positions()) == {1}
    store.commit({0: [Change(b"k", 1, 0, b"v")]}, {0: AT}, {})
    assert reader.get(0, b"k") is not None


def test_binding_is_kept(store: LmdbWriter) -> None:
    binding = Binding("cluster", "balance.v1.changelog", "topic id")
    assert store.binding() is None

    store.bind(binding)

    assert store.binding() == binding


def test_changed_byte_is_noticed_on_reading_and_by_the_check(path: Path) -> None:
    writer = LmdbWriter(path, map_size_bytes=MAP_SIZE_BYTES, partitions=PARTITIONS)
    writer.commit({0: [Change(b"the key", 1, 0, b"the value")]}, {0: AT}, {1: "{}"})
    writer.close()
    assert damage(path) is None
    data = (path / "data.mdb").read_bytes()
    (path / "data.mdb").write_bytes(data.replace(b"the value", b"thE value"))

    with pytest.raises(StoreDamagedError, match="checksum"):
        reader_of(path).get(0, b"the key")
    assert "checksum" in (damage(path) or "")


def test_truncated_file_is_found_without_killing_who_asks(path: Path) -> None:
    writer = LmdbWriter(path, map_size_bytes=MAP_SIZE_BYTES, partitions=PARTITIONS)
    writer.commit({0: [Change(b"%d" % n, 1, n, bytes(500)) for n in range(200)]}, {0: AT}, {})
    writer.close()
    assert read_everything(path) > 200
    with (path / "data.mdb").open("r+b") as file:
        file.truncate(5 * 4096)

    assert damage(path) == "its file is shorter than its pages"
    with pytest.raises(StoreDamagedError, match="shorter"):
        reader_of(path)


def test_reader_of_a_store_that_is_not_there_says_so(path: Path) -> None:
    with pytest.raises(StoreMissingError, match="There is no store"):
        reader_of(path)


@pytest.mark.parametrize("key", [b"", b"k" * 512])
def test_key_that_cannot_be_held_is_not_found(reader: ReaderElsewhere, key: bytes) -> None:
    assert reader.get(0, key) is None

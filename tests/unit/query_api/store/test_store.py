"""The contract of query_api/store/base.py, tested for every backend."""

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from include.position import Offsets
from query_api.errors import StoreMissingError
from query_api.store.base import (
    ALL_KEYS,
    Binding,
    Change,
    ChangelogPosition,
    KeyRange,
    StoreBackend,
    StoredRecord,
    StoreReader,
    StoreWriter,
)
from query_api.store.checks import CheckExtent
from query_api.store.stored_form import unpacked
from tests.support.changelogs.cases import CASES, ChangelogCase
from tests.unit.query_api.store.store_process import PARTITIONS, torn_reads

AT = ChangelogPosition(next_offset=5, as_of=1.0, folded=Offsets({0: 8, 1: 3}))
KEYS = sorted(f"key-{number}".encode() for number in range(25))


def put(writer: StoreWriter, partition: int, *changes: Change) -> None:
    writer.commit({partition: list(changes)}, {partition: AT}, {})


@pytest.fixture
def filled(writer: StoreWriter, reader: StoreReader) -> StoreReader:
    """A reader of a store whose partition 1 has 25 keys."""
    put(writer, 1, *(Change(key, 1, number, b"value of " + key) for number, key in enumerate(KEYS)))
    return reader


def scanned(reader: StoreReader, limit: int, keys: KeyRange = ALL_KEYS) -> list[bytes]:
    """Return the keys of all pages."""
    found: list[bytes] = []
    after: bytes | None = b""
    while after is not None:
        page = reader.scan(1, keys, after=after, limit=limit)
        assert len(page.keys) == len(page.stored) <= limit
        assert page.total == len(KEYS)
        found += page.keys
        after = page.next
    return found


def test_records_positions_and_schemas_become_visible_together(
    writer: StoreWriter, reader: StoreReader
) -> None:
    writer.commit({1: [Change(b"k", 3, 4, b"value")]}, {1: AT}, {9: "{}"})

    assert reader.get(1, b"k") == StoredRecord(b"value", 3, 4)
    assert reader.get(0, b"k") is None
    assert reader.positions() == {1: AT} == writer.positions()
    assert (reader.schema_text(9), reader.schema_text(8)) == ("{}", None)
    assert writer.schemas() == {9: "{}"}


@pytest.mark.parametrize("in_one_commit", [True, False])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_store_has_the_newest_record_of_a_changelog(
    writer: StoreWriter, reader: StoreReader, case: ChangelogCase, *, in_one_commit: bool
) -> None:
    changes = [
        Change(b"k", 0 if is_removal else event_count, index, None if is_removal else b"%d" % index)
        for index, (event_count, is_removal) in enumerate(case.log)
    ]
    for batch in [changes] if in_one_commit else [[change] for change in changes]:
        put(writer, 0, Change(b"other", 1, 0, b"o"), *batch)

    newest = case.newest_if_forgotten
    stored = None if newest is None else StoredRecord(b"%d" % newest, case.log[newest].event_count, newest)
    assert reader.get(0, b"k") == stored
    assert reader.count(0) == (1 if stored is None else 2)


def test_keys_up_to_the_maximum_length_are_stored(
    backend: StoreBackend, writer: StoreWriter, reader: StoreReader
) -> None:
    longest = b"k" * backend.max_key_bytes

    put(writer, 0, Change(longest, 1, 0, b"v"))

    assert writer.max_key_bytes == backend.max_key_bytes >= 256, "the fold accepts keys of up to 256 bytes"
    assert reader.get(0, longest) == StoredRecord(b"v", 1, 0)
    assert reader.get(0, longest + b"k") is None
    assert reader.get(0, b"") is None
    assert list(reader.scan(0, KeyRange(start=longest + b"k"), limit=1).keys) == []
    assert reader.scan(0, after=longest[:-1] + b"jzz", limit=1).keys[0] == longest


@pytest.mark.parametrize("limit", [1, 7, 24, 25, 26, 1000])
def test_pages_have_every_key_once_and_in_order(filled: StoreReader, limit: int) -> None:
    assert scanned(filled, limit) == KEYS


def test_page_has_the_records_and_the_key_to_continue_after(filled: StoreReader) -> None:
    page = filled.scan(1, limit=2)

    assert unpacked(page) == [
        (b"key-0", StoredRecord(b"value of key-0", 1, 0)),
        (b"key-1", StoredRecord(b"value of key-1", 1, 1)),
    ]
    assert (page.next, page.total) == (b"key-1", 25)


def test_partition_without_records_has_an_empty_page(filled: StoreReader) -> None:
    page = filled.scan(0, limit=10)

    assert (unpacked(page), page.next, page.total) == ([], None, 0)


def test_scan_continues_after_a_nonexistent_key(filled: StoreReader) -> None:
    assert filled.scan(1, after=b"key-1a", limit=1).keys[0] == b"key-2"
    page = filled.scan(1, after=b"z", limit=1)
    assert (unpacked(page), page.next, page.total) == ([], None, 25)


@pytest.mark.parametrize("limit", [1, 3, 100])
@pytest.mark.parametrize(
    "keys",
    [
        KeyRange(prefix=b"key-1"),
        KeyRange(prefix=b"key-1", start=b"key-12"),
        KeyRange(prefix=b"key-1", end=b"key-12"),
        KeyRange(start=b"key-12", end=b"key-19"),
        KeyRange(start=b"key-9"),
        KeyRange(end=b"key-0"),
        KeyRange(prefix=b"\xff"),
        KeyRange(prefix=b"key-\xff"),
        KeyRange(start=b"key-5", end=b"key-2"),
    ],
)
def test_scan_of_a_range_has_the_keys_of_the_range(filled: StoreReader, keys: KeyRange, limit: int) -> None:
    expected = [
        key
        for key in KEYS
        if key.startswith(keys.prefix) and key >= keys.start and (keys.end is None or key < keys.end)
    ]

    assert scanned(filled, limit, keys) == expected


def test_keys_of_highest_bytes_are_in_the_range_of_their_prefix(
    writer: StoreWriter, reader: StoreReader
) -> None:
    keys = [b"\xfe\xff", b"\xff", b"\xff\xff", b"\xff\xff\x01"]
    put(writer, 0, *(Change(key, 1, 0, b"v") for key in keys))

    assert list(reader.scan(0, KeyRange(prefix=b"\xff"), limit=9).keys) == keys[1:]
    assert list(reader.scan(0, KeyRange(prefix=b"\xfe\xff"), limit=9).keys) == keys[:1]


def test_scan_follows_commits_and_deletions(writer: StoreWriter, filled: StoreReader) -> None:
    assert scanned(filled, 100) == KEYS

    put(writer, 1, Change(b"key-00", 1, 30, b"new"), Change(KEYS[5], 0, 31, None))
    put(writer, 1, Change(b"key-99", 1, 32, b"new"), Change(b"key-00", 0, 33, None))

    assert list(filled.scan(1, limit=100).keys) == [*KEYS[:5], *KEYS[6:], b"key-99"]


def test_forgotten_partition_is_empty_and_can_be_filled_again(
    writer: StoreWriter, reader: StoreReader
) -> None:
    change = Change(b"k", 1, 0, b"v")
    writer.commit({0: [change], 1: [change]}, {0: AT, 1: AT}, {})

    writer.forget(0)
    writer.mark_complete([0])

    assert (reader.get(0, b"k"), reader.count(0), reader.count(1)) == (None, 0, 1)
    assert set(reader.positions()) == {1}
    put(writer, 0, change)
    assert reader.get(0, b"k") is not None
    assert writer.record_count() == 2


def test_store_grows_with_its_records(writer: StoreWriter, reader: StoreReader) -> None:
    empty = reader.size_bytes()

    put(writer, 0, *(Change(key, 1, 0, bytes(10_000)) for key in KEYS))

    assert 250_000 <= reader.size_bytes() - empty <= 750_000


def test_binding_is_stored(writer: StoreWriter) -> None:
    binding = Binding("cluster", "balance.v1.changelog", "topic id")
    assert writer.binding() is None

    writer.bind(binding)

    assert writer.binding() == binding


def test_commit_is_seen_whole_or_not_at_all(
    backend: StoreBackend, writer: StoreWriter, reader: StoreReader, path: Path, process: ProcessPoolExecutor
) -> None:
    assert reader.positions() == {}
    watched = process.submit(torn_reads, backend, path, (b"left", b"right"), 0.5)
    number = 0
    while not watched.done():
        number += 1
        put(writer, 0, *(Change(key, number, number, b"v") for key in (b"left", b"right")))
        writer.housekeep()

    reads, torn = watched.result()
    assert (torn, number > 10, reads > 50) == ([], True, True)


def test_nonexistent_store_is_missing(backend: StoreBackend, path: Path) -> None:
    assert not backend.exists(path)

    with pytest.raises(StoreMissingError, match="There is no store"):
        backend.open_reader(path, PARTITIONS)


def test_directory_without_the_stores_own_files_cannot_be_used(backend: StoreBackend, path: Path) -> None:
    path.mkdir()
    (path / "another backend's file").touch()

    assert backend.begin_check(path, CheckExtent.OPENING).finding() is not None


def test_open_store_exists_and_its_reader_is_not_replaced(
    backend: StoreBackend, reader: StoreReader, path: Path
) -> None:
    assert backend.exists(path)
    assert not reader.is_replaced()

"""A store is listed in the order of its keys, page by page, all of it or a sample."""

from pathlib import Path
from zlib import crc32

import pytest

from query_api.store.base import Change, Position, Sample
from query_api.store.lmdb import reader as lmdb_reader
from query_api.store.lmdb.reader import LmdbReader
from query_api.store.lmdb.writer import LmdbWriter

KEYS = sorted(f"key-{number}".encode() for number in range(25))
MAP_SIZE_BYTES = 1024 * 1024
EVERYTHING = Sample()


@pytest.fixture
def reader(tmp_path: Path) -> LmdbReader:
    writer = LmdbWriter(tmp_path, map_size_bytes=MAP_SIZE_BYTES, partitions=2)
    changes = [Change(key, 1, number, b"value of " + key) for number, key in enumerate(KEYS)]
    writer.commit({1: changes}, {1: Position(25, 0.0)}, {})
    writer.close()
    return LmdbReader(tmp_path, map_size_bytes=MAP_SIZE_BYTES, partitions=2)


def listed(reader: LmdbReader, limit: int, sample: Sample = EVERYTHING) -> list[bytes]:
    found: list[bytes] = []
    after: bytes | None = b""
    while after is not None:
        page = reader.page(1, after, limit, sample)
        assert len(page.records) <= limit
        assert page.total == len(KEYS)
        found += [key for key, _ in page.records]
        after = page.next
    return found


@pytest.mark.parametrize("limit", [1, 7, 24, 25, 26, 1000])
def test_pages_give_every_key_once_and_in_order(reader: LmdbReader, limit: int) -> None:
    assert listed(reader, limit) == KEYS


def test_records_are_those_that_were_written(reader: LmdbReader) -> None:
    page = reader.page(1, b"", 2, EVERYTHING)

    assert [record.value for _, record in page.records] == [b"value of key-0", b"value of key-1"]
    assert page.next == b"key-1"


def test_a_partition_without_records_has_an_empty_page(reader: LmdbReader) -> None:
    assert reader.page(0, b"", 10, EVERYTHING) == ([], None, 0)


def test_listing_goes_on_behind_a_key_that_is_not_there(reader: LmdbReader) -> None:
    assert reader.page(1, b"key-1a", 1, EVERYTHING).records[0][0] == b"key-2"
    assert reader.page(1, b"z", 1, EVERYTHING) == ([], None, 25)


def test_the_samples_of_all_buckets_are_all_keys(reader: LmdbReader) -> None:
    samples = [listed(reader, 3, Sample(bucket, 4)) for bucket in range(4)]

    assert sorted(key for sample in samples for key in sample) == KEYS
    assert samples[1] == [key for key in KEYS if crc32(key) % 4 == 1]


def test_a_page_of_a_small_sample_looks_at_so_many_keys_only(
    reader: LmdbReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lmdb_reader, "SCANNED_KEYS", 10)

    page = reader.page(1, b"", 1, Sample(2**31, 2**31 + 1))

    assert (page.records, page.next) == ([], KEYS[9])
    assert listed(reader, 1, Sample(2**31, 2**31 + 1)) == []

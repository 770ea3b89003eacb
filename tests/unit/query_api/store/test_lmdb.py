"""LMDB stores: the file format is stable, damage is detected, and the map grows."""

import json
import struct
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from zlib import crc32

import lmdb
import pytest

from include.position import Offsets
from query_api.errors import StoreDamagedError
from query_api.store.base import Binding, Change, ChangelogPosition, StoredRecord
from query_api.store.checks import CheckExtent
from query_api.store.lmdb import LmdbBackend
from query_api.store.lmdb.read_check import StoreChecker
from query_api.store.lmdb.writer import LmdbWriter
from query_api.store.stored_form import BadRecordError, unpacked
from tests.unit.query_api.store.store_process import PARTITIONS, remote_reader

MAP_SIZE_BYTES = 1024 * 1024
BACKEND = LmdbBackend(MAP_SIZE_BYTES)
AT = ChangelogPosition(next_offset=5, as_of=1.0, folded=Offsets({0: 8, 1: 3}))
KEY, VALUE = b"the key", b"the value"
# The format documented in layout.py and stored_form.py, written by hand: existing stores contain these bytes.
BODY = struct.pack(">qq", 3, 4) + VALUE
DATABASES = {
    b"p0": {KEY: struct.pack(">I", crc32(BODY, crc32(KEY))) + BODY},
    b"p1": {},
    b"positions": {b"0": b'{"next_offset": 5, "as_of": 1.0, "folded": {"0": 7, "1": 2}}'},
    b"schemas": {b"9": b"{}"},
    b"binding": {b"binding": b'{"cluster_id": "c", "topic": "t", "topic_id": "i"}'},
}


def damage(path: Path, extent: CheckExtent = CheckExtent.EVERYTHING) -> str | None:
    return BACKEND.begin_check(path, extent).finding()


@pytest.fixture
def writer(path: Path) -> LmdbWriter:
    return BACKEND.open_writer(path, PARTITIONS)


def test_store_in_the_documented_format_is_opened_and_continued(path: Path) -> None:
    path.mkdir()
    with lmdb.open(str(path), max_dbs=len(DATABASES), map_size=MAP_SIZE_BYTES) as environment:
        for name, entries in DATABASES.items():
            database = environment.open_db(name)
            with environment.begin(write=True, db=database) as transaction:
                for key, stored in entries.items():
                    transaction.put(key, stored)

    assert (BACKEND.exists(path), damage(path)) == (True, None)
    writer = BACKEND.open_writer(path, PARTITIONS)
    found = (writer.positions(), writer.schemas(), writer.binding(), writer.record_count())
    assert found == ({0: AT}, {9: "{}"}, Binding("c", "t", "i"), 1)
    writer.commit({0: [Change(KEY, 2, 5, b"older"), Change(b"k", 1, 6, b"v")]}, {}, {})
    writer.close()
    reader = BACKEND.open_reader(path, PARTITIONS)
    assert unpacked(reader.scan(0, limit=3)) == [
        (b"k", StoredRecord(b"v", 1, 6)),
        (KEY, StoredRecord(VALUE, 3, 4)),
    ]


def test_store_is_written_in_the_documented_format(writer: LmdbWriter, path: Path) -> None:
    writer.commit({0: [Change(KEY, 3, 4, VALUE)]}, {0: AT}, {9: "{}"})
    writer.bind(Binding("c", "t", "i"))
    writer.close()

    with lmdb.open(str(path), max_dbs=len(DATABASES), readonly=True) as environment:
        found = {}
        for name in DATABASES:
            database = environment.open_db(name, create=False)
            with environment.begin(db=database) as transaction:
                found[name] = dict(transaction.cursor())
        with environment.begin() as transaction:
            names = {name for name, _ in transaction.cursor()}
    assert (found, names) == (DATABASES, set(DATABASES))
    assert json.loads(found[b"positions"][b"0"])["next_offset"] == 5


def test_map_grows_when_it_is_full_and_readers_follow(
    writer: LmdbWriter, path: Path, process: ProcessPoolExecutor
) -> None:
    reader = remote_reader(LmdbBackend(64 * 1024 * 1024), path, process)
    for number in range(8):
        # In total also more than the 64 MB of the reader's map.
        writer.commit({0: [Change(b"key %d" % number, 1, number, bytes(12 * MAP_SIZE_BYTES))]}, {0: AT}, {})

    assert all(reader.get(0, b"key %d" % number) is not None for number in range(8))
    assert writer.record_count() == 8
    writer.close()


def test_changed_byte_is_found_on_reading_and_by_the_check(writer: LmdbWriter, path: Path) -> None:
    writer.commit({0: [Change(KEY, 1, 0, VALUE)]}, {0: AT}, {1: "{}"})
    writer.close()
    assert damage(path) is None
    data = (path / "data.mdb").read_bytes()
    (path / "data.mdb").write_bytes(data.replace(VALUE, b"thE value"))

    reader = BACKEND.open_reader(path, PARTITIONS)
    with pytest.raises(StoreDamagedError, match="checksum"):
        reader.get(0, KEY)
    with pytest.raises(BadRecordError, match="checksum"):
        unpacked(reader.scan(0, limit=1))
    assert "checksum" in (damage(path) or "")


def test_truncated_file_is_found_without_killing_the_process(writer: LmdbWriter, path: Path) -> None:
    writer.commit({0: [Change(b"%d" % n, 1, n, bytes(500)) for n in range(200)]}, {0: AT}, {})
    writer.close()
    assert StoreChecker(path, CheckExtent.EVERYTHING).run() > 200
    with (path / "data.mdb").open("r+b") as file:
        file.truncate(5 * 4096)

    assert damage(path) == "its file is shorter than its pages"
    with pytest.raises(StoreDamagedError, match="shorter"):
        BACKEND.open_reader(path, PARTITIONS)

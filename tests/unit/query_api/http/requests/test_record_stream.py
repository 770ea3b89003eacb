"""All records of a partition as one Arrow stream: as they are stored, in order, whole or not at all."""

import json
import struct
from pathlib import Path
from urllib.parse import quote
from zlib import crc32

import lmdb
import pyarrow as pa
import pytest

from include.settings import Settings
from query_api.http import record_stream
from query_api.lookup.lookup_results import LookupFailedError
from query_api.lookup.routing import partition_of
from query_api.store.directory import StoreDirectory
from query_api.store.lmdb import LmdbBackend, layout
from tests.unit.query_api.http.stops import PARTITIONS, StopsNode, stops_settings

PATH = "/api/read-models/stops/records?format=arrow&partition=0"
KEYS = sorted(
    key
    for key in ("a", "ü", "a/b", "a\n", *(f"stop-{number}" for number in range(50)))
    if partition_of(key.encode(), PARTITIONS) == 0
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return stops_settings(tmp_path)


@pytest.fixture
def node(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> StopsNode:
    monkeypatch.setattr(record_stream, "BATCH_RECORDS", 4)
    node = StopsNode(settings)
    node.store("stops", 1, {key: {"n": len(key), "lat": 0.5, "lon": 0.0} for key in KEYS})
    node.publish()
    return node


def batches(body: bytes) -> list[tuple[pa.RecordBatch, dict[bytes, bytes]]]:
    with pa.ipc.open_stream(body) as reader:
        return [(batch, dict(given)) for batch, given in reader.iter_batches_with_custom_metadata()]


def keys_of(body: bytes) -> list[str]:
    return [key for batch, _ in batches(body) for key in batch.column("key").to_pylist()]


def test_all_records_are_in_the_order_of_their_keys(node: StopsNode) -> None:
    found = node.client.get(PATH)

    assert found.headers["Content-Type"] == "application/vnd.apache.arrow.stream"
    assert (found.headers["Foldlake-Version"], found.headers["Foldlake-Role"]) == ("1", "owner")
    parts = batches(found.data)
    assert [len(batch) for batch, _ in parts[:-1]] == [4] * (len(parts) - 1)
    assert keys_of(found.data) == KEYS
    assert [b"end" in given for _, given in parts] == [False] * (len(parts) - 1) + [True]
    assert {given[b"position"] for _, given in parts} == {b"99"}


def test_records_are_as_the_changelog_has_them(node: StopsNode) -> None:
    (batch, _), *_ = batches(node.client.get(PATH).data)
    listed = node.client.get("/api/read-models/stops/records?partition=0&limit=4").json
    assert listed is not None

    assert batch.column("event_count").to_pylist() == [1] * 4
    for value, record in zip(batch.column("value").to_pylist(), listed["records"], strict=True):
        magic, schema_id = struct.unpack_from(">bi", value)
        assert (magic, schema_id) == (0, 7)
        assert value[5:6] == bytes([2 * record["state"]["n"]])  # a small long in Avro


@pytest.mark.parametrize("after", [KEYS[0], KEYS[9], "a/"])
def test_a_stream_continues_after_a_key(node: StopsNode, after: str) -> None:
    found = node.client.get(f"{PATH}&after={quote(after)}")

    assert keys_of(found.data) == [key for key in KEYS if key.encode() > after.encode()]


def test_a_stream_after_the_last_key_is_empty_and_complete(node: StopsNode) -> None:
    found = node.client.get(PATH + "&after=" + "\u00ff\u00ff")

    ((batch, given),) = batches(found.data)
    assert (len(batch), b"end" in given) == (0, True)


def test_a_prefix_selects_keys(node: StopsNode) -> None:
    found = node.client.get(PATH + "&prefix=stop-1")

    assert keys_of(found.data) == [key for key in KEYS if key.startswith("stop-1")]


@pytest.mark.parametrize(
    ("query", "slug", "status"),
    [
        ("format=csv&partition=0", "invalid-format", 400),
        ("format=arrow", "invalid-partition", 400),
        ("format=arrow&partition=0&sample=3/3", "invalid-sample", 400),
        ("partition=0&sample=1/3", "unknown-parameter", 400),
        ("format=arrow&partition=0&limit=5", "unknown-parameter", 400),
        ("format=arrow&partition=7", "not-owner", 421),
        ("format=arrow&partition=0&version=9", "unknown-model", 404),
    ],
)
def test_a_request_that_cannot_be_served_is_a_problem(
    node: StopsNode, query: str, slug: str, status: int
) -> None:
    found = node.client.get(f"/api/read-models/stops/records?{query}")

    assert found.status_code == status
    assert slug in {json.loads(found.data)["type"].rpartition(":")[2], found.headers.get("Foldlake-Reason")}


def test_samples_of_all_buckets_have_all_keys(node: StopsNode) -> None:
    samples = [keys_of(node.client.get(f"{PATH}&sample={bucket}/3").data) for bucket in range(3)]

    assert sorted(key for sample in samples for key in sample) == KEYS
    assert samples[1] == [key for key in KEYS if crc32(key.encode()) % 3 == 1]


def damage(settings: Settings, key: str) -> None:
    """Change the last byte of a record's value in the store."""
    path = StoreDirectory(settings.store_dir, LmdbBackend(1)).path("stops", 1)
    with lmdb.open(str(path), max_dbs=PARTITIONS + layout.OTHER_DATABASES) as environment:
        database = environment.open_db(layout.partition_database(0), create=False)
        with environment.begin(write=True, db=database) as transaction:
            stored = bytes(transaction.get(key.encode()) or b"")
            transaction.put(key.encode(), stored[:-1] + bytes([stored[-1] ^ 1]))


def test_a_damaged_record_is_not_sent(settings: Settings, node: StopsNode) -> None:
    damage(settings, KEYS[1])

    found = node.client.get(PATH)

    assert (found.status_code, found.headers["Foldlake-Reason"]) == (503, "not-ready")


def test_a_stream_that_meets_damage_does_not_look_complete(settings: Settings, node: StopsNode) -> None:
    damage(settings, KEYS[5])

    response = node.client.get(PATH, buffered=False)
    received: list[bytes] = []
    with pytest.raises(LookupFailedError, match="checksum"):
        received.extend(response.iter_encoded())

    parts = batches(b"".join(received))
    assert [len(batch) for batch, _ in parts] == [4]
    assert all(b"end" not in given for _, given in parts)

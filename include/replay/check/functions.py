"""Functions of keys that DuckDB lacks: the partition of a key, and whether it is in a sample."""

import zlib

import duckdb
import pyarrow as pa
from confluent_kafka import murmur2
from duckdb.func import PythonUDFType
from duckdb.sqltypes import DuckDBPyType

KEY_PARTITION, KEY_CRC = "key_partition", "key_crc"


def add_functions(connection: duckdb.DuckDBPyConnection) -> None:
    """Add `key_partition(key, partitions)`, as Kafka's Java client computes it, and `key_crc(key)`, its CRC-32."""
    kind, text, integer = PythonUDFType.ARROW, DuckDBPyType("VARCHAR"), DuckDBPyType("INTEGER")
    connection.create_function(KEY_PARTITION, _partitions, [text, integer], integer, type=kind)
    connection.create_function(KEY_CRC, _checksums, [text], DuckDBPyType("BIGINT"), type=kind)


def _partitions(keys: pa.ChunkedArray, partitions: pa.ChunkedArray) -> pa.Array:
    # A constant, repeated for each key.
    number = partitions[0].as_py() if len(partitions) else 1
    return pa.array([murmur2(key.encode(), number) for key in keys.to_pylist()], pa.int32())


def _checksums(keys: pa.ChunkedArray) -> pa.Array:
    return pa.array([zlib.crc32(key.encode()) for key in keys.to_pylist()], pa.int64())

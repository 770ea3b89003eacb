"""The origin of an output, as columns: its headers, and whether it is written already."""

import json
from collections.abc import Iterable, Mapping

from pyspark.sql import Column
from pyspark.sql.functions import array, col, from_json, lit, struct

from include.kafka.dead_letters import (
    ROUTE_HEADER,
    SOURCE_OFFSET_HEADER,
    SOURCE_PARTITION_HEADER,
    SOURCE_TOPIC_HEADER,
)
from include.kafka.origins import SOURCE_INDEX_HEADER, LanePartition, OutputOrigin

NOT_WRITTEN = OutputOrigin(-1, -1)


def is_new(
    written: Mapping[LanePartition, OutputOrigin], lanes: int, output_partitions: int, lane: Column
) -> Column:
    """Return whether an output is not written yet, from the columns source_offset, source_index and output_partition.

    written: the newest origin of each pair. lanes: their number. lane: the lane of the output.
    """
    pairs = [LanePartition(p, q) for p in range(lanes) for q in range(output_partitions)]
    return is_new_of_pair(written, pairs, lane * lit(output_partitions) + col("output_partition"))


def is_new_of_pair(
    written: Mapping[LanePartition, OutputOrigin], pairs: Iterable[LanePartition], number: Column
) -> Column:
    """Return whether an output is not written yet, from the columns source_offset and source_index.

    written: the newest origin of each pair. pairs: all pairs. number: the position of the output's pair among them, from 0.
    """
    newest = [written.get(pair, NOT_WRITTEN) for pair in pairs]
    # One literal of any size: a condition for each pair would be compiled for each record.
    table = from_json(
        lit(json.dumps([{"offset": origin.offset, "index": origin.index} for origin in newest])),
        "array<struct<offset: bigint, index: int>>",
    )
    newest_origin = table[number]
    offset, index = newest_origin["offset"], newest_origin["index"]
    return (col("source_offset") > offset) | (
        (col("source_offset") == offset) & (col("source_index") > index)
    )


def origin_headers(writer: str, source_topic: str, others: Mapping[str, Column] | None = None) -> Column:
    """Return the headers of an output, from the columns source_partition, source_offset and source_index.

    others: further headers by name, as strings.
    """
    texts = {
        ROUTE_HEADER: lit(writer),
        SOURCE_TOPIC_HEADER: lit(source_topic),
        SOURCE_PARTITION_HEADER: col("source_partition").cast("string"),
        SOURCE_OFFSET_HEADER: col("source_offset").cast("string"),
        SOURCE_INDEX_HEADER: col("source_index").cast("string"),
        **(others or {}),
    }
    return array(
        *(struct(lit(name).alias("key"), text.cast("binary").alias("value")) for name, text in texts.items())
    )

"""A record that fits into a dead letter, with its headers, fits into the batch that the topic accepts."""

import pytest

from spark_jobs.folding.decode import Reason
from spark_jobs.streaming.outputs.dead_letter_records import PRODUCER_MAX_BYTES, max_payload_bytes

TOPIC = "balance"
# Kafka's DefaultRecordBatch.RECORD_BATCH_OVERHEAD and DefaultRecord.MAX_RECORD_OVERHEAD: how its producer estimates a batch.
OVERHEAD = 61 + 21
MAX_VARINT = 5


def estimated_batch_bytes(payload_bytes: int, reason: str) -> int:
    """Return the producer's estimate for a dead letter, with every length at its longest."""
    headers = {
        "reason": reason,
        "source_topic": TOPIC,
        "source_partition": "2147483647",
        "source_offset": "9223372036854775807",
    }
    texts = sum(2 * MAX_VARINT + len(name) + len(text) for name, text in headers.items())
    return OVERHEAD + 2 * MAX_VARINT + payload_bytes + MAX_VARINT + texts


@pytest.mark.parametrize("limit", [10_000, 1_048_588, 50_000_000])
@pytest.mark.parametrize("reason", list(Reason))
def test_the_largest_payload_fits(limit: int, reason: Reason) -> None:
    payload = max_payload_bytes(TOPIC, limit)

    assert estimated_batch_bytes(payload, reason) <= min(limit, PRODUCER_MAX_BYTES)
    assert payload > min(limit, PRODUCER_MAX_BYTES) - 400, "little is given away"

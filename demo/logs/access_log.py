"""Ships the access logs of this home's nodes to the topic `logs`: `python -m demo.logs.access_log`, until it is interrupted.

Nodes write them with FOLDLAKE_NODE_ACCESS_LOG=true. A line's time in Kafka is its own. What is on the topic already is not sent again: the
lines of a node are in the order of its file.
"""

import json
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

from demo.appending import FLUSH_TIMEOUT_S, event_producer
from demo.log_tables import messages
from demo.logs.loading import TOPIC, bytes_of
from include.errors import KafkaUnavailableError
from include.settings import Settings

POLL_S = 1.0


def ship(settings: Settings) -> int:
    """Append the lines of the access logs that the topic lacks, and return their number. Raises KafkaUnavailableError."""
    present = Counter(bytes_of(message.key()) for message in messages(settings, TOPIC))
    producer = event_producer(settings.kafka_connection)
    shipped = 0
    for path in sorted((settings.home / "logs").glob("*-access.jsonl")):
        for line in _whole_lines(path):
            fields = json.loads(line)
            key = str(fields["thread_name"]).encode()
            if present[key] > 0:
                present[key] -= 1
                continue
            written_ms = round(datetime.fromisoformat(fields["@timestamp"]).timestamp() * 1000)
            producer.produce(TOPIC, line.encode(), key, timestamp=written_ms)
            producer.poll(0)
            shipped += 1
    left = producer.flush(FLUSH_TIMEOUT_S)
    if left:
        raise KafkaUnavailableError(f"{left} lines were not acknowledged. Hint: check that the broker is up.")
    return shipped


def _whole_lines(path: Path) -> list[str]:
    """Return the lines of a file, without one that is being written."""
    return [
        line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")
    ]


if __name__ == "__main__":
    while True:
        ship(Settings())
        time.sleep(POLL_S)

"""The Kafka consumer that reads a changelog."""

from confluent_kafka import Consumer


def changelog_consumer(bootstrap_servers: str, client_id: str) -> Consumer:
    """Return a consumer for manual assignment that never commits and never resets an offset automatically."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "foldlake-query-node-data",
            "client.id": client_id,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            # The default pause when the local queue is full is 1 s; at 200,000 records/s the consumer would idle.
            "fetch.queue.backoff.ms": 5,
            "queued.max.messages.kbytes": 32_768,
            "socket.nagle.disable": True,
            "log_level": 3,
        }
    )

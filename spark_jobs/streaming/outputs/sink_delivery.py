"""How outputs that are written once are sent, and how long they may be on their way.

After a query has failed or was stopped, Spark's producer may still send what the query gave it. The next query starts only when that has
been sent or given up: otherwise it would read which outputs are written before the last of them are.
"""

from dataclasses import dataclass

SinkOptions = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SinkDelivery:
    """How long Spark's producer tries to send a record, and how long one request may take."""

    delivery_timeout_ms: int
    request_timeout_ms: int

    @property
    def options(self) -> SinkOptions:
        """Options of the Kafka sink."""
        return (
            ("kafka.delivery.timeout.ms", str(self.delivery_timeout_ms)),
            ("kafka.request.timeout.ms", str(self.request_timeout_ms)),
            ("kafka.enable.idempotence", "true"),
            ("kafka.acks", "all"),
        )

    @property
    def delivered_after_s(self) -> float:
        """How long after the end of a query its last records have been sent or given up."""
        return self.delivery_timeout_ms / 1000 + 1


OUTPUTS = SinkDelivery(delivery_timeout_ms=25_000, request_timeout_ms=10_000)
# Fewer and smaller: a query of dead letters that fails is retried for ever, and nothing waits for it.
DEAD_LETTERS = SinkDelivery(delivery_timeout_ms=8_000, request_timeout_ms=4_000)
# One event may have many outputs. What waits is sent in few requests, and what does not wait is sent at once as before.
SINK = (("kafka.batch.size", "262144"), *OUTPUTS.options)
DELIVERED_AFTER_S = OUTPUTS.delivered_after_s

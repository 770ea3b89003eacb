"""How outputs that are written once are sent, and how long they may be on their way.

After a query has failed or was stopped, Spark's producer may still send what the query gave it. The next query starts only when that has
been sent or given up: otherwise it would read which outputs are written before the last of them are.
"""

DELIVERY_TIMEOUT_MS = 25_000
REQUEST_TIMEOUT_MS = 10_000
SINK = (
    # One event may have many outputs. What waits is sent in few requests, and what does not wait is sent at once as before.
    ("kafka.batch.size", "262144"),
    ("kafka.delivery.timeout.ms", str(DELIVERY_TIMEOUT_MS)),
    ("kafka.request.timeout.ms", str(REQUEST_TIMEOUT_MS)),
    ("kafka.enable.idempotence", "true"),
    ("kafka.acks", "all"),
)
DELIVERED_AFTER_S = DELIVERY_TIMEOUT_MS / 1000 + 1

"""The route `catalogue`: every change of the compacted topic `products`, kept for ever."""

from foldlake import Latency, Route, TopicOptions

# Kafka removes all but the newest record of each product from `products`. Read models fold a log that is kept: what stands on
# `catalogue` stays there in this order (docs/decisions/0054).
DECLARATIONS = [
    Route(
        name="catalogue",
        source_topic="products",
        source=TopicOptions(compacted=True),
        event_types=("Product",),
        output_topic="catalogue",
        latency=Latency.SECOND,
    ),
]

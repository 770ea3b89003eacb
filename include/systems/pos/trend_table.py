"""The event table `trend`: the line items that the route `trend` writes, for analysts."""

from include.declarations.event_table import EventTable

DECLARATIONS = [
    EventTable(
        name="trend",
        source_topic="trend-records",
        event_type="TrendRecord",
        doc="A line item of an invoice, without personal data.",
    ),
]

"""The event table `browser-events`: each action and captcha of a browser as a row, for analysts."""

from include.declarations.event_table import EventTable

DECLARATIONS = [
    EventTable(
        name="browser-events",
        source_topic="browser-events",
        event_type="BrowserEvent",
        doc="An action of a browser, or its answer to a captcha.",
    ),
]

"""The route `browser-events`: log lines about actions and captchas, keyed by the browser instead of the thread, and their event table."""

from foldlake import EventFormat, EventTable, Route

# One route for both: a join by key is a fold of both, in whichever order they come.
DECLARATIONS = [
    Route(
        name="browser-events",
        source_topic="logs",
        source_format=EventFormat.JSON,
        event_types=("BrowserActionLogged", "CaptchaResultLogged"),
        output_topic="browser-events",
        output_type="BrowserEvent",
        fields={
            "occurredOn": "occurredOn",
            "browserHash": "browserHash",
            "kind": "CASE WHEN event_type = 'CaptchaResultLogged' THEN 'CAPTCHA' ELSE 'ACTION' END",
            "action": "BrowserActionLogged.action",
            "solved": "coalesce(CaptchaResultLogged.solved, false)",
        },
    ),
    EventTable(
        name="browser-events",
        source_topic="browser-events",
        event_type="BrowserEvent",
        doc="An action of a browser, or its answer to a captcha.",
    ),
]

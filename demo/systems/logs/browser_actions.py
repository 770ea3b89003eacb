"""The read model `browser-actions`: the actions of each browser, left-joined with the captchas that it has solved.

With the route that keys log lines by the browser instead of the thread, and the emission of one request for each browser that reaches
5 actions without a solved captcha.
"""

from foldlake import Emission, EventFormat, EventTable, Lookup, ReadModel, Route, StateField

ACTIONS = "count(CASE WHEN kind = 'ACTION' THEN 1 END)"
SOLVED = "bool_or(solved)"

DECLARATIONS = [
    # One route for both: a join by key is a fold of both, in whichever order they come.
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
    ReadModel(
        name="browser-actions",
        source_topic="browser-events",
        event_types=("BrowserEvent",),
        key="browserHash",
        state=(
            StateField("actions", "long", "Number of actions."),
            StateField("solved", "boolean", "Whether the browser has solved a captcha."),
            StateField("unsolved", "long", "Number of actions, or 0 once the browser has solved a captcha."),
        ),
        folds={
            1: {
                "actions": ACTIONS,
                "solved": SOLVED,
                "unsolved": f"CASE WHEN {SOLVED} THEN 0 ELSE {ACTIONS} END",
            }
        },
        key_doc="Hash of the browser.",
    ),
    Lookup(
        "/api/browsers.getActions",
        parameter="browserHash",
        fields=("unsolved", "actions", "solved"),
        max_key_bytes=64,
        example="ad0891632773690e",
    ),
    Emission(
        name="captcha-requests",
        read_model="browser-actions",
        output_topic="captcha-requests",
        output_type="CaptchaRequest",
        # A captcha that was not solved leaves the count as it is: only the action that reaches the threshold emits.
        where="kind = 'ACTION' AND state.unsolved = 5",
        fields={"occurredOn": "occurredOn", "browserHash": "browserHash", "actions": "state.actions"},
    ),
]

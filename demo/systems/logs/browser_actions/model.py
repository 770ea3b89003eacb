"""The read model `browser-actions`: the actions of each browser, left-joined with the captchas that it has solved, and its API."""

from foldlake import Lookup, ReadModel, StateField

ACTIONS = "count(CASE WHEN kind = 'ACTION' THEN 1 END)"
SOLVED = "bool_or(solved)"

DECLARATIONS = [
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
]

"""The route `browser-events`: log lines about actions and captchas, keyed by the browser instead of the thread."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.event_types.event_format import EventFormat
from include.declarations.route import Route

if TYPE_CHECKING:
    from pyspark.sql import Column

ACTION, CAPTCHA = "ACTION", "CAPTCHA"


def browser_event() -> "Mapping[str, Column]":
    """The fields of a BrowserEvent."""
    from pyspark.sql.functions import coalesce, col, lit, when

    is_captcha = col("event_type") == "CaptchaResultLogged"
    return {
        "occurredOn": col("occurredOn"),
        "browserHash": col("browserHash"),
        "kind": when(is_captcha, lit(CAPTCHA)).otherwise(lit(ACTION)),
        "action": col("BrowserActionLogged.action"),
        "solved": coalesce(col("CaptchaResultLogged.solved"), lit(False)),  # noqa: FBT003 - a column
    }


# One route for both: a join by key is a fold of both, in whichever order they come.
DECLARATIONS = [
    Route(
        name="browser-events",
        source_topic="logs",
        source_format=EventFormat.JSON,
        event_types=("BrowserActionLogged", "CaptchaResultLogged"),
        output_topic="browser-events",
        output_type="BrowserEvent",
        fields=browser_event,
    ),
]

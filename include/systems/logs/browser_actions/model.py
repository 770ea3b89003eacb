"""The read model `browser-actions`: the actions of each browser, left-joined with the captchas that it has solved."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.read_model import ReadModel, StateField

from .re_key import ACTION

if TYPE_CHECKING:
    from pyspark.sql import Column


def browser() -> "Column":
    """Key: the hash of the browser."""
    from pyspark.sql.functions import col

    return col("browserHash")


def _state(actions: "Column", solved: "Column") -> "Mapping[str, Column]":
    from pyspark.sql.functions import lit, when

    return {"actions": actions, "solved": solved, "unsolved": when(solved, lit(0)).otherwise(actions)}


def actions() -> "Mapping[str, Column]":
    """Fold: the number of actions, whether a captcha was solved, and the result of the left join."""
    from pyspark.sql import functions as F

    return _state(F.count(F.when(F.col("kind") == ACTION, 1)), F.bool_or("solved"))


def all_actions() -> "Mapping[str, Column]":
    """Merge: the sum of the actions, and whether any part has a solved captcha."""
    from pyspark.sql import functions as F

    return _state(F.sum("actions"), F.bool_or("solved"))


DECLARATIONS = [
    ReadModel(
        name="browser-actions",
        source_topic="browser-events",
        event_types=("BrowserEvent",),
        key=browser,
        state=(
            StateField("actions", "long", "Number of actions."),
            StateField("solved", "boolean", "Whether the browser has solved a captcha."),
            StateField("unsolved", "long", "Number of actions, or 0 once the browser has solved a captcha."),
        ),
        folds={1: actions},
        merges={1: all_actions},
        key_doc="Hash of the browser.",
    ),
]

"""The emission `captcha-requests`: one request for each browser that reaches 5 actions without a solved captcha."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.emission import Emission

from .re_key import ACTION

if TYPE_CHECKING:
    from pyspark.sql import Column

THRESHOLD = 5


def crosses() -> "Column":
    """Whether the action reaches the threshold; a captcha that was not solved in between leaves the count as it is."""
    from pyspark.sql.functions import col

    return (col("kind") == ACTION) & (col("state.unsolved") == THRESHOLD)


def captcha_request(_revision: int) -> "Mapping[str, Column]":
    """The fields of a CaptchaRequest."""
    from pyspark.sql.functions import col

    return {
        "occurredOn": col("occurredOn"),
        "browserHash": col("browserHash"),
        "actions": col("state.actions"),
    }


DECLARATIONS = [
    Emission(
        name="captcha-requests",
        read_model="browser-actions",
        output_topic="captcha-requests",
        output_type="CaptchaRequest",
        fields=captcha_request,
        where=crosses,
    ),
]

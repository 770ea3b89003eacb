"""A record contains all of its key's events below the cut."""

from collections.abc import Sequence

from spark_jobs.quality.rules import AtLeastColumn, Expectation

COMPLETE = "complete up to the cut"


def of_each_key(_fields: Sequence[str]) -> list[Expectation]:
    """The stored offset has reached the key's newest event below the cut."""
    return [Expectation(COMPLETE, AtLeastColumn("stored_offset", "required_offset"))]

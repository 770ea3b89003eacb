"""A key has only one record in each replica."""

from collections.abc import Sequence

from spark_jobs.quality.rules import AtMost, Expectation

ONCE = "each key stands once"


def of_each_key(_fields: Sequence[str]) -> list[Expectation]:
    """Each row is the first record of its key."""
    return [Expectation(ONCE, AtMost("copy", 1))]

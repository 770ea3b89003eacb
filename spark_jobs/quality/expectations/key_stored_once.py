"""A key has one record in each replica."""

from collections.abc import Sequence

from spark_jobs.quality.rules import AtMost, Expectation

ONCE = "each key stands once"


def of_each_key(_fields: Sequence[str]) -> list[Expectation]:
    """A row is its key's first."""
    return [Expectation(ONCE, AtMost("copy", 1))]

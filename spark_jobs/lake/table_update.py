"""One run of a table's job: writes what is new, then runs OPTIMIZE and VACUUM if they are due."""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from include.lake.tags import LakeTagT
from spark_jobs.lake.maintenance import Maintenance, Usage, maintain, usage
from spark_jobs.lake.spark_table import SparkTable

# The counts of the records that were read; their text is part of the result's.
Counts = TypeVar("Counts")
# Values of the argument --optimize.
WHEN_WORTH_IT, ALWAYS = "when-worth-it", "always"


@dataclass
class Written(Generic[LakeTagT, Counts]):
    """The new content of a table. tag: of the newest commit. commits: their number, without those of OPTIMIZE and VACUUM."""

    tag: LakeTagT
    counts: Counts
    commits: int = 0


@dataclass(frozen=True)
class TableUpdate(Generic[LakeTagT, Counts]):
    """The result of bringing one table up to date; tag, counts and commits as in Written."""

    tag: LakeTagT
    counts: Counts
    commits: int
    before: Usage
    after: Usage
    maintenance: tuple[Maintenance, ...]
    seconds: float

    def __str__(self) -> str:
        """Return the result in one line."""
        return (
            f"{self.tag.content}: {self.counts}, {self.commits} commits, in {self.seconds:.1f} s; "
            f"before: {self.before}; after: {self.after}"
        )


def update_table(
    table: SparkTable[LakeTagT],
    write: Callable[[], Written[LakeTagT, Counts]],
    *,
    force_optimize: bool,
    started_s: float,
) -> TableUpdate[LakeTagT, Counts]:
    """Run `write`, which commits what is new, and maintain the table. The caller holds the table's lock.

    started_s: when the job began, on the monotonic clock.
    """
    before = usage(table.spark, table.path)
    written = write()
    maintenance, after = maintain(table, written.tag, force=force_optimize)
    return TableUpdate(
        tag=written.tag,
        counts=written.counts,
        commits=written.commits,
        before=before,
        after=after,
        maintenance=maintenance,
        seconds=time.monotonic() - started_s,
    )


def add_optimize_argument(parser: argparse.ArgumentParser) -> None:
    """Add --optimize to the arguments of a table's job."""
    parser.add_argument(
        "--optimize",
        choices=(WHEN_WORTH_IT, ALWAYS),
        default=WHEN_WORTH_IT,
        help=f"when to run OPTIMIZE and VACUUM (default: {WHEN_WORTH_IT})",
    )

"""Submits the job server to Spark: `python -m stack.launchers.job_server_submit <spark-submit's arguments>`."""

import sys

from include.settings import Settings
from stack.launchers.batch_submit import execute


def main() -> None:
    """Execute spark-submit in place of this process, or print the reason for a failure and exit."""
    execute(Settings(), "lake", sys.argv[1:])


if __name__ == "__main__":
    main()

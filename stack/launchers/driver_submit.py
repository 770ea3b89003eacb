"""Launches the stream driver with the configuration that follows from the settings: becomes its JVM.

Run by its supervisor, not imported: the configuration depends on the read models, which a process reads once.
"""

import argparse
import sys
from pathlib import Path

from include.errors import FoldlakeError
from include.settings import CHECKOUT, Settings
from include.spark.stream_config import stream_config, stream_master
from stack.launchers import spark_submit


def main() -> None:
    """Execute the stream driver in place of this process, or print the reason for a failure and exit."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--write-cache", type=Path, help="write an ahead-of-time cache to this file at the end"
    )
    options.add_argument(
        "--standby", action="store_true", help="get ready, and fold when the driver has ended"
    )
    chosen = options.parse_args()
    settings = Settings()
    try:
        arguments = [
            *("--master", stream_master(settings)),
            *(f"--conf={name}={value}" for name, value in stream_config(settings).items()),
            str(CHECKOUT / "spark_jobs" / "stream.py"),
        ]
    except FoldlakeError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
    spark_submit.launch(arguments, chosen.write_cache, is_standby=chosen.standby)


if __name__ == "__main__":
    main()

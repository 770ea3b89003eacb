"""Launches the stream driver with the configuration that follows from the settings: becomes its JVM.

Run by its supervisor, not imported: the configuration depends on the read models, which a process reads once.
"""

import argparse
import os
import sys
from pathlib import Path

from include.declarations.load import load_catalog
from include.errors import FoldlakeError, ReadModelError
from include.settings import CHECKOUT, Settings
from include.spark.stream_config import stream_config, stream_master
from include.stream.driver_launch import HANDOVER
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
    options.add_argument(
        "--handover",
        action="store_true",
        help="with --standby: fail unless every declaration and essential query can be used",
    )
    chosen = options.parse_args()
    settings = Settings()
    try:
        if chosen.handover:
            os.environ[HANDOVER] = "true"
            _require_all(settings)
        arguments = [
            *("--master", stream_master(settings)),
            *(f"--conf={name}={value}" for name, value in stream_config(settings).items()),
            str(CHECKOUT / "spark_jobs" / "stream.py"),
        ]
    except FoldlakeError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
    spark_submit.launch(arguments, chosen.write_cache, is_standby=chosen.standby)


def _require_all(settings: Settings) -> None:
    """Raise ReadModelError when a module of declarations cannot be loaded: another driver would leave it out."""
    failures = load_catalog(settings.declaration_folders).failures
    if failures:
        raise ReadModelError(" ".join(f"{failure}." for failure in failures))


if __name__ == "__main__":
    main()

"""The log of a Spark application's Python driver."""

import logging
import time
from logging.handlers import RotatingFileHandler
from pathlib import Path

LOG_FORMAT = "%(asctime)sZ %(levelname)s %(name)s: %(message)s"
LOG_FILE_BYTES = 10 * 1024 * 1024
LOG_FILES = 3


def log_driver(path: Path | None = None) -> None:
    """Log to standard error, and to a file when given: one line a message, with the time in UTC.

    Under Airflow standard error is the task's log, together with Spark's; the file holds the lines of the driver alone.
    """
    logging.Formatter.converter = time.gmtime
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(RotatingFileHandler(path, maxBytes=LOG_FILE_BYTES, backupCount=LOG_FILES))
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, handlers=handlers)
    for library in ("py4j", "httpx"):
        logging.getLogger(library).setLevel(logging.WARNING)

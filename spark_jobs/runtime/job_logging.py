"""Logging for every Spark application: one line per message, with the time in UTC."""

import logging
import time
from logging.handlers import RotatingFileHandler
from pathlib import Path

LOG_FORMAT = "%(asctime)sZ %(levelname)s %(name)s: %(message)s"
LOG_FILE_BYTES = 10 * 1024 * 1024
LOG_FILES = 3


def configure_logging(path: Path | None = None) -> None:
    """Log to standard error, and also to a file if a path is given.

    Under Airflow, standard error goes to the task's log, together with Spark's own messages; the file contains only those of Foldlake.
    """
    logging.Formatter.converter = time.gmtime
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(RotatingFileHandler(path, maxBytes=LOG_FILE_BYTES, backupCount=LOG_FILES))
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, handlers=handlers)
    for chatty in ("py4j", "httpx"):
        logging.getLogger(chatty).setLevel(logging.WARNING)

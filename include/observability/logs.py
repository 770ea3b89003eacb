"""The logs of all processes of Foldlake: one place that configures them, as lines of text or as JSON objects.

A line that belongs to a request has the request's id, and that of its trace.
"""

import json
import logging
import time
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from include.observability.request_context import request_id, trace_id
from include.settings import LogFormat

# Of lines of text, with times in UTC.
TEXT = "%(asctime)sZ %(levelname)s %(name)s: %(message)s"
FILE_BYTES = 10 * 1024 * 1024
FILES = 3
# Libraries that log each request as information.
CHATTY = ("py4j", "httpx")


class TextFormatter(logging.Formatter):
    """Formats a line of text, which ends with the request that it belongs to, if any."""

    converter = staticmethod(time.gmtime)

    def __init__(self, pattern: str = TEXT) -> None:
        super().__init__(pattern)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - a method of the base class
        """Return the line without a traceback."""
        line, request = super().formatMessage(record), request_id()
        return f"{line} [request {request}]" if request else line


class JsonFormatter(logging.Formatter):
    """Formats a JSON object on one line. role, node: of the process; a process of no node has no name of one."""

    def __init__(self, role: str, node: str = "") -> None:
        super().__init__()
        self._process = {"role": role, **({"node": node} if node else {})}

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON text. It escapes all line breaks, so that no text of a client begins a line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **self._process,
            "thread": record.threadName,
        }
        if request := request_id():
            line["requestId"] = request
        if trace := trace_id():
            line["traceId"] = trace
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = record.stack_info
        return json.dumps(line)


def log_formatter(log_format: LogFormat, role: str, node: str = "", text: str = TEXT) -> logging.Formatter:
    """Return the formatter of a process. text: the pattern of its lines of text."""
    return JsonFormatter(role, node) if log_format is LogFormat.JSON else TextFormatter(text)


def configure_logs(
    log_format: LogFormat, role: str, node: str = "", *, path: Path | None = None, text: str = TEXT
) -> None:
    """Log to standard error, and also to a file if a path is given. Does nothing in a process whose log is configured.

    role: what the process does, such as `materializer`. node: the name of its query node; empty for other processes.
    """
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(RotatingFileHandler(path, maxBytes=FILE_BYTES, backupCount=FILES))
    formatter = log_formatter(log_format, role, node, text)
    for handler in handlers:
        handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=handlers)
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)

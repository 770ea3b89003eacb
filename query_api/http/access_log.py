"""The log of a node's HTTP server, and its access log, if it is enabled: a JSON object for each request, as a log appender writes it.

The fields are those of the logger `browser-actions` of the system `logs`, whose routes read it once it is shipped (docs/logs.md).
"""

import hmac
import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from include.observability.logs import log_formatter
from include.observability.request_context import request_id
from include.settings import Settings
from include.stream.pseudonym_key import pseudonym_key

LOGGER = "browser-actions"
# What granian gives to the formatter of each request; `_h0` is the header.
FORMAT = "%(method)s %(path)s %(status)d %(header{user-agent})s"
AGENT = "_h0"
HASH_CHARACTERS = 16


def access_log_path(settings: Settings) -> Path:
    """Return the file to which this node's requests are appended."""
    return settings.home / "logs" / f"{settings.node.name}-access.jsonl"


def thread_name(node: str) -> str:
    """Return the name under which a node's requests are logged: the key of its lines."""
    return f"{node}-http"


class AccessLogFormatter(logging.Formatter):
    """Formats a request. The browser is a keyed hash of address and user agent: the log has neither.

    node: name of the node. key: of the hash.
    """

    def __init__(self, node: str, key: bytes) -> None:
        super().__init__()
        self._thread = thread_name(node)
        self._key = key

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON of a request, given the fields that granian has of it."""
        request: Mapping[str, Any] = record.args if isinstance(record.args, Mapping) else {}
        browser = f"{request.get('addr')} {request.get(AGENT)}"
        digest = hmac.new(self._key, browser.encode(errors="replace"), "sha256").hexdigest()
        time = datetime.fromtimestamp(record.created, UTC)
        return json.dumps(
            {
                "@timestamp": time.isoformat(timespec="milliseconds"),
                "@version": "1",
                "level": record.levelname,
                "logger_name": LOGGER,
                "thread_name": self._thread,
                "message": f"{request.get('method')} {request.get('path')}",
                "browser_hash": digest[:HASH_CHARACTERS],
                "action": request.get("path"),
                "status": request.get("status"),
                "request_id": request_id(),
            }
        )


def log_options(settings: Settings) -> dict[str, Any]:
    """Return the options of granian's server that write its log, and the access log if that is enabled."""
    logs: dict[str, Any] = {
        "version": 1,
        # The application of a worker configures its own log.
        "disable_existing_loggers": False,
        "formatters": {
            "log": {
                "()": log_formatter,
                "log_format": settings.log.format,
                "role": "server",
                "node": settings.node.name,
            }
        },
        "handlers": {"log": {"class": "logging.StreamHandler", "formatter": "log"}},
        "loggers": {"_granian": {"handlers": ["log"], "level": "INFO", "propagate": False}},
    }
    options: dict[str, Any] = {"log_dictconfig": logs}
    if not settings.node.access_log:
        return options
    path = access_log_path(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    logs["formatters"]["access"] = {
        "()": AccessLogFormatter,
        "node": settings.node.name,
        "key": pseudonym_key(settings),
    }
    # Of all workers: each line is one write to the end of the file.
    logs["handlers"]["access"] = {
        "class": "logging.FileHandler",
        "filename": str(path),
        "formatter": "access",
    }
    logs["loggers"]["granian.access"] = {"handlers": ["access"], "level": "INFO", "propagate": False}
    return options | {"log_access": True, "log_access_format": FORMAT}

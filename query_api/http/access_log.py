"""The access log of a node's HTTP server, if it is enabled: a JSON object for each request, as a log appender writes it.

The fields are those of the logger `browser-actions` of the system `logs`, whose routes read it once it is shipped (docs/logs.md).
"""

import hmac
import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
            }
        )


def access_log_options(settings: Settings) -> dict[str, Any]:
    """Return the options of granian's server that write the access log; none if it is not enabled."""
    if not settings.node.access_log:
        return {}
    path = access_log_path(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    formatter = {"()": AccessLogFormatter, "node": settings.node.name, "key": pseudonym_key(settings)}
    # Of all workers: each line is one write to the end of the file.
    handler = {"class": "logging.FileHandler", "filename": str(path), "formatter": "access"}
    console = {"class": "logging.StreamHandler", "stream": "ext://sys.stdout"}
    return {
        "log_access": True,
        "log_access_format": FORMAT,
        "log_dictconfig": {
            "version": 1,
            "formatters": {"access": formatter},
            "handlers": {"access": handler, "console": console},
            "loggers": {
                "_granian": {"handlers": ["console"], "level": "INFO", "propagate": False},
                "granian.access": {"handlers": ["access"], "level": "INFO", "propagate": False},
            },
        },
    }

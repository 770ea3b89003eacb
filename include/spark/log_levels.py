"""The level of a line in the log of a Spark application, as Spark, its launcher and Foldlake's jobs write it."""

import json
import logging
import re
from typing import Any

# "26/11/26 06:15:36 WARN TaskSetManager: …" of Spark, "2026-11-26 06:15:36,310Z WARNING foldlake.lake: …" of a job.
DATED = re.compile(
    r"^\d{2,4}[/-]\d{2}[/-]\d{2} \d{2}:\d{2}:\d{2}\S* (?P<level>[A-Z]+) (?P<message>.*)", re.DOTALL
)
# "WARNING: Using incubator modules: …" of Java.
UNDATED = re.compile(r"^(?P<level>WARNING|ERROR): (?P<message>.*)", re.DOTALL)
LEVELS = {
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "CRITICAL": logging.CRITICAL,
}


def level_of(line: str) -> tuple[int, str]:
    """Return the level of a line, INFO if it names none or a lower one, and its text without the time."""
    if line.startswith("{") and (parsed := _object(line)):
        return LEVELS.get(str(parsed.get("level")), logging.INFO), str(parsed.get("message"))
    found = DATED.match(line) or UNDATED.match(line)
    if found is None:
        return logging.INFO, line
    return LEVELS.get(found["level"], logging.INFO), found["message"]


def _object(line: str) -> dict[str, Any]:
    """Return the object of a line that is JSON (include/observability/logs.py); empty for any other."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

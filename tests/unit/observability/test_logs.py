"""A line of a log names the request and the trace that it belongs to, as text or as a JSON object."""

import json
import logging
import sys
from pathlib import Path

import pytest

from include.errors import SettingsError
from include.observability.logs import configure_logs, log_formatter
from include.observability.request_context import CURRENT, GIVEN_ID_KEY, TRACEPARENT_KEY
from include.settings import LogFormat, Settings
from include.spark.log_levels import level_of

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(autouse=True)
def outside_a_request() -> None:
    CURRENT.request = None


def line(
    log_format: LogFormat, message: str = "told %s", *arguments: object, level: int = logging.WARNING
) -> str:
    record = logging.LogRecord("foldlake.x", level, "", 0, message, arguments or ("all",), None)
    record.created = 1_772_438_400.174
    record.msecs = 174.0
    return log_formatter(log_format, "materializer", "node-1").format(record)


def test_a_line_of_text_has_its_time_in_utc_and_its_request() -> None:
    outside = line(LogFormat.TEXT)
    CURRENT.request = {GIVEN_ID_KEY: "one"}

    assert outside == "2026-03-02 08:00:00,174Z WARNING foldlake.x: told all"
    assert line(LogFormat.TEXT) == f"{outside} [request one]"


def test_an_object_has_process_request_and_trace() -> None:
    CURRENT.request = {GIVEN_ID_KEY: "one", TRACEPARENT_KEY: TRACE}

    assert json.loads(line(LogFormat.JSON)) == {
        "time": "2026-03-02T08:00:00.174+00:00",
        "level": "WARNING",
        "logger": "foldlake.x",
        "message": "told all",
        "role": "materializer",
        "node": "node-1",
        "thread": "MainThread",
        "requestId": "one",
        "traceId": "0af7651916cd43dd8448eb211c80319c",
    }


def test_no_message_begins_a_line_of_its_own() -> None:
    found = line(LogFormat.JSON, "%s", 'x\n{"level": "ERROR"}\u2028')

    assert len(found.splitlines()) == 1
    assert json.loads(found)["message"] == 'x\n{"level": "ERROR"}\u2028'


def test_an_object_has_the_traceback() -> None:
    try:
        int("reason")
    except ValueError:
        record = logging.LogRecord("foldlake.x", logging.ERROR, "", 0, "failed", None, sys.exc_info())

    found = json.loads(log_formatter(LogFormat.JSON, "server").format(record))

    assert found["error"].endswith("'reason'")
    assert "node" not in found


@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING, logging.ERROR])
@pytest.mark.parametrize("log_format", LogFormat)
def test_airflow_finds_the_level_of_a_line_of_both_forms(log_format: LogFormat, level: int) -> None:
    found, message = level_of(line(log_format, level=level))

    assert found == level
    assert message.endswith("told all")


def test_a_process_logs_to_its_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.RootLogger(logging.INFO)
    monkeypatch.setattr(logging, "root", root)
    path = tmp_path / "logs" / "stream.log"
    configure_logs(LogFormat.JSON, "stream driver", path=path)
    try:
        root.info("told")
    finally:
        for handler in root.handlers:
            handler.close()

    assert json.loads(path.read_text())["role"] == "stream driver"


def test_any_other_format_is_refused() -> None:
    with pytest.raises(SettingsError, match="FOLDLAKE_LOG_FORMAT"):
        Settings.of(log_format="xml")

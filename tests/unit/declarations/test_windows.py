"""Windows of event time: their starts and keys; what expires; lookups of a time range are found and checked."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from sys import getsizeof

import pytest

from include.declarations.expiry import Expiry
from include.declarations.load import load_catalog
from include.declarations.windows import HoppingWindow, WindowLookup
from include.errors import ReadModelError
from include.kafka.state_record import StateRecord
from include.position import Position
from include.settings import Settings
from include.settings.systems import system_folder
from spark_jobs.streaming.workers.expiry_sweeper import expired_keys
from tests.support.declarations.refusal import refusal

LOGS = (system_folder("logs"),)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
EVERY_2_S = HoppingWindow(size=timedelta(seconds=5), slide=timedelta(seconds=2))
MODEL = """
from dataclasses import replace
from include.declarations.expiry import Expiry
from include.read_models.balance.model import READ_MODEL as BALANCE
READ_MODEL = replace(BALANCE, name="parcels", {declared})
"""


def seconds(*numbers: int) -> list[datetime]:
    return [NOON + timedelta(seconds=number) for number in numbers]


@pytest.mark.parametrize(
    ("since_s", "until_s", "expected"),
    [(0, 6, [0, 2, 4]), (1, 6, [2, 4]), (0, 7, [0, 2, 4, 6]), (3, 4, []), (4, 2, [])],
)
def test_a_range_has_the_windows_that_begin_in_it(since_s: int, until_s: int, expected: list[int]) -> None:
    since, until = seconds(since_s, until_s)

    assert list(EVERY_2_S.starts_between(since, until)) == [time.timestamp() for time in seconds(*expected)]


@pytest.mark.parametrize(
    ("since", "until", "number"),
    [
        ("2026-01-01T00:00:00+00:00", "2026-05-01T00:00:00+00:00", 120 * 24 * 1800),
        ("0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59.999999+00:00", 157_768_948_800),
        # A microsecond is not lost far from 1970, as it would be in a float.
        ("9999-01-01T00:00:00.000001+00:00", "9999-01-01T00:00:02.000001+00:00", 1),
        ("1969-12-31T23:59:57.5+00:00", "1970-01-01T00:00:00.5+00:00", 2),
        ("2026-03-02T14:00:00+02:00", "2026-03-02T12:00:04+00:00", 2),
    ],
)
def test_the_windows_of_any_range_are_counted_without_making_them(
    since: str, until: str, number: int
) -> None:
    starts = EVERY_2_S.starts_between(datetime.fromisoformat(since), datetime.fromisoformat(until))

    assert (len(starts), getsizeof(starts) < 100) == (number, True)


@pytest.mark.parametrize(
    ("start_s", "key"),
    [
        (1_772_452_800, b"a/b/2026-03-02T12:00:00Z"),
        (-62_135_596_800, b"a/b/0001-01-01T00:00:00Z"),
    ],
)
def test_a_key_is_that_of_the_time_in_utc_as_spark_writes_it(start_s: int, key: bytes) -> None:
    assert EVERY_2_S.key("a/b", start_s) == key


@pytest.mark.parametrize(("size_s", "slide_s"), [(5, 0), (1, 2), (5, 0.5), (2.5, 1)])
def test_a_window_is_of_whole_seconds_and_not_shorter_than_its_slide(size_s: float, slide_s: float) -> None:
    with pytest.raises(ReadModelError, match="give whole seconds"):
        HoppingWindow(size=timedelta(seconds=size_s), slide=timedelta(seconds=slide_s))


def test_what_is_older_than_the_newest_by_the_expiry_time_has_expired() -> None:
    states = {
        f"{ended}".encode(): StateRecord({"window_end": time}, Position(0, ended, 1), time)
        for ended, time in zip((0, 39, 40, 100), seconds(0, 39, 40, 100), strict=True)
    }

    assert expired_keys(states, Expiry("windowEnd", "window_end"), 60.0) == [b"0", b"39"]
    assert expired_keys({}, Expiry("windowEnd", "window_end"), 60.0) == []
    # A nullable field: without a time, an item stays.
    untimed = {b"none": StateRecord({"window_end": None}, Position(0, 0, 1), seconds(0)[0])}
    assert expired_keys({**states, **untimed}, Expiry("windowEnd", "window_end"), 60.0) == [b"0", b"39"]
    assert expired_keys(untimed, Expiry("windowEnd", "window_end"), 60.0) == []


def test_the_windows_of_browsers_expire_after_the_time_of_the_settings() -> None:
    expires = load_catalog(LOGS).models["browser-windows"].expires

    assert expires is not None
    assert expires.after_s(Settings.of(stream_expiry_s=99).stream) == 99
    assert Expiry("a", "b", timedelta(minutes=2)).after_s(Settings.of().stream) == 120


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            "merges={}, expires=Expiry('occurredOn', 'seen')",
            r"expires by seen, which its state does not have",
        ),
        (
            "merges={1: dict}, expires=Expiry('occurredOn', 'amount')",
            r"neither merges nor another key: remove merges",
        ),
    ],
)
def test_what_cannot_expire_is_refused(tmp_path: Path, declared: str, message: str) -> None:
    (tmp_path / "parcels.py").write_text(MODEL.format(declared=declared))

    assert re.search(message, refusal(tmp_path))


def test_an_emission_does_not_read_a_read_model_whose_items_expire(tmp_path: Path) -> None:
    (tmp_path / "notices.py").write_text(
        "from include.declarations.kinds.emission import Emission\n"
        "EMISSION = Emission('notices', 'browser-windows', 'notices', 'WindowedAction', lambda _: {})\n"
    )

    with pytest.raises(ReadModelError, match="whose items end"):
        load_catalog((*LOGS, tmp_path))


def test_the_window_lookup_is_found_with_its_read_model() -> None:
    ((model, lookup),) = load_catalog(LOGS).endpoints

    assert (model.name, lookup.path) == ("browser-windows", "/api/browsers.getWindows")
    assert isinstance(lookup, WindowLookup)
    assert lookup.window == EVERY_2_S


def test_a_window_lookup_of_an_unknown_field_is_refused(tmp_path: Path) -> None:
    (tmp_path / "parcels.py").write_text(
        MODEL.format(declared="source_topic='parcels'")
        + "from datetime import timedelta\n"
        + "from include.declarations.windows import HoppingWindow\n"
        + "from include.declarations.windows import WindowLookup\n"
        + "WINDOW = HoppingWindow(timedelta(seconds=2), timedelta(seconds=1))\n"
        + "WINDOW_LOOKUPS = (WindowLookup('/api/parcels.getWindows', 'parcelId', WINDOW, ('weight',)),)\n"
    )

    assert "/api/parcels.getWindows" not in {lookup.path for _, lookup in load_catalog((tmp_path,)).endpoints}
    assert "returns weight, which parcels does not have" in refusal(tmp_path)

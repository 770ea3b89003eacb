"""Periodic emissions are found beside read models; what cannot work is refused; a tick is never written again."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from include.declarations.kinds.periodic_emission import next_tick, tick_at
from include.declarations.load import load_catalog
from include.errors import ReadModelError
from include.settings import Settings
from include.settings.systems import system_folder
from tests.support.declarations.refusal import refusal

MODULE = """
from datetime import timedelta
from include.declarations.kinds.periodic_emission import PeriodicEmission
PERIODIC_EMISSION = PeriodicEmission(
    name={name!r}, read_model={model!r}, output_topic={output!r}, output_type="Total", fields={fields}, every={every}
)
"""
TOTAL = """{
  "type": "record", "name": "Total", "namespace": "t", "foldlake.key": "who",
  "fields": [{"name": "who", "type": "string"}, {"name": "events", "type": "long"}]
}"""
FIELDS = {"who": "key", "events": "event_count"}


def declare(
    folder: Path,
    name: str = "totals",
    model: str = "balance",
    output: str = "totals",
    fields: object = FIELDS,
    every: str = "None",
) -> None:
    text = MODULE.format(name=name, model=model, output=output, fields=fields, every=every)
    (folder / f"{name.replace('-', '_')}.py").write_text(text)
    (folder / "Total.avsc").write_text(TOTAL)


def test_the_counts_of_views_have_the_interval_of_the_settings() -> None:
    (counts,) = load_catalog((system_folder("logs"),)).periodic.values()

    assert counts.interval_ms(Settings.of().stream) == 10_000
    assert counts.interval_ms(Settings.of(stream_periodic_interval_s=2.5).stream) == 2_500
    topic = counts.topic_named(counts.output_topic, Settings.of(partitions=3).topics)
    assert (topic.name, topic.partitions) == ("product-view-counts", 3)


def test_a_declared_interval_comes_before_that_of_the_settings(tmp_path: Path) -> None:
    declare(tmp_path, every="timedelta(minutes=1)")
    assert load_catalog((tmp_path,)).periodic["totals"].interval_ms(Settings.of().stream) == 60_000


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"model": "blance"}, r"'blance', which is no read model\. Known read models: balance"),
        ({"fields": {"who": "key"}}, r"gives \['who'\], but t\.Total has \['events', 'who'\]"),
        (
            {"fields": {"who": "key", "events": "sum"}},
            r"writes sum, which balance does not have: use key, tick",
        ),
        ({"every": "timedelta(seconds=0.1)"}, r"every of periodic emission totals"),
        ({"name": "Totals"}, r"use lower-case letters, digits and dashes"),
        ({"output": "balance"}, r"would circulate"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path: Path, declared: dict[str, object], message: str) -> None:
    declare(tmp_path, **declared)  # type: ignore[arg-type]  # of these types

    assert re.search(message, refusal(tmp_path))


def test_two_writers_of_one_topic_are_refused(tmp_path: Path) -> None:
    declare(tmp_path, "one")
    declare(tmp_path, "two")
    with pytest.raises(ReadModelError, match="write to totals: give each a topic of its own"):
        load_catalog((tmp_path,))


def test_ticks_are_multiples_of_the_interval() -> None:
    assert [tick_at(ms, 10_000) for ms in (0, 9_999, 10_000, 25_000)] == [0, 0, 10_000, 20_000]


@pytest.mark.parametrize(
    ("now_ms", "written_ms", "expected_ms"),
    [
        (12_000, None, 20_000),
        (12_000, 10_000, 20_000),
        # The clock was set back: a tick that was written is not written again.
        (12_000, 40_000, 50_000),
        # No driver ran for a while: the missed ticks are not made up for.
        (95_000, 10_000, 100_000),
        # It was written with another interval.
        (12_000, 19_000, 20_000),
    ],
)
def test_the_next_tick_has_not_begun_and_is_after_every_written_one(
    now_ms: int, written_ms: int | None, expected_ms: int
) -> None:
    assert next_tick(now_ms, round(timedelta(seconds=10).total_seconds() * 1000), written_ms) == expected_ms

"""The embedded Redis runs only where it is wanted, on loopback, and never removes a record by itself."""

from pathlib import Path

import pytest

from include.settings import Settings
from stack.components import redis
from stack.lifecycle import all_processes


def names(home: Path, **values: object) -> set[str]:
    return {process.name for process in all_processes(Settings.of(home=home, **values))}


@pytest.mark.parametrize(
    ("values", "is_wanted"),
    [
        ({}, False),
        ({"placements": "balance=replicated"}, False),
        ({"placements": "balance=redis"}, True),
        ({"redis_embedded": "on"}, True),
        ({"placements": "balance=redis", "redis_url": "redis://cache.example:6379/0"}, False),
        # A stop must reach it although the setting is wrong by now.
        ({"placements": "unknown=redis"}, True),
    ],
)
def test_it_runs_if_a_read_model_is_placed_in_it_or_the_setting_says_so(
    tmp_path: Path, values: dict[str, object], *, is_wanted: bool
) -> None:
    assert ("redis" in names(tmp_path, **values)) is is_wanted


def test_its_files_are_in_the_home_and_nothing_is_written_when_it_is_not_wanted(tmp_path: Path) -> None:
    redis.prepare(Settings.of(home=tmp_path))
    assert list(tmp_path.iterdir()) == []

    settings = Settings.of(home=tmp_path, redis_embedded="on", redis_port=23456, redis_memory_mb=64)
    redis.prepare(settings)

    written = (tmp_path / "redis" / "redis.conf").read_text().splitlines()
    assert {"bind 127.0.0.1", "port 23456", "maxmemory 64mb", "maxmemory-policy noeviction"} <= set(written)
    assert f'dir "{tmp_path / "redis"}"' in written

"""The configuration for the driver of a new stream supervisor becomes the requested one when that has replaced the present one."""

from pathlib import Path

from include.settings import Settings
from include.stream import driver_configuration

NEW = "/run/stream-supervisor-2.json"


def names(home: Path) -> list[str | None]:
    """Return the node's name in the requested configuration, and in that for the new stream supervisor."""
    found = (driver_configuration.read(home), driver_configuration.read_next(home, NEW))
    return [None if one is None else one.settings().stream.driver_host for one in found]


def request(home: Path, name: str) -> None:
    driver_configuration.request(Settings.of(home=home, stream_driver_host=name), "")


def request_next(home: Path, name: str) -> None:
    driver_configuration.request_for(Settings.of(home=home, stream_driver_host=name), "", NEW)


def test_only_that_supervisor_reads_it(tmp_path: Path) -> None:
    request(tmp_path, "old")
    request_next(tmp_path, "new")

    assert names(tmp_path) == ["old", "new"]
    assert driver_configuration.read_next(tmp_path, "/run/stream-supervisor-1.json") is None
    driver_configuration.adopt_next(tmp_path, "/run/stream-supervisor-1.json")
    assert names(tmp_path) == ["old", "new"]


def test_it_becomes_the_requested_one(tmp_path: Path) -> None:
    request(tmp_path, "old")
    request_next(tmp_path, "new")

    driver_configuration.adopt_next(tmp_path, NEW)

    assert names(tmp_path) == ["new", None]
    assert driver_configuration.configuration_path(tmp_path).stat().st_mode & 0o777 == 0o600


def test_a_later_request_or_a_stop_removes_it(tmp_path: Path) -> None:
    request_next(tmp_path, "new")
    request(tmp_path, "newer")
    assert names(tmp_path) == ["newer", None]

    request_next(tmp_path, "newest")
    driver_configuration.remove(tmp_path)
    assert names(tmp_path) == [None, None]

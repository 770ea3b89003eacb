"""When there is a standby driver."""

import pytest

from include.settings import Settings
from stack.launchers import driver_handover
from stack.launchers.driver_handover import standby_fits


@pytest.mark.parametrize(
    ("standby", "available_mb", "master", "fits"),
    [
        ("auto", 3_000, "", False),
        ("auto", 4_000, "", True),
        ("auto", 4_000, "spark://127.0.0.1:7077", False),
        ("on", 1_000, "", True),
        ("off", 9_000, "", False),
    ],
)
def test_there_is_a_standby_if_it_is_wanted_or_fits_the_memory(
    monkeypatch: pytest.MonkeyPatch, standby: str, available_mb: int, master: str, fits: bool
) -> None:
    monkeypatch.setattr(driver_handover, "available_bytes", lambda: available_mb * 1024 * 1024)
    settings = Settings.of(stream_standby=standby, stream_master=master, stream_driver_memory_mb=1024)

    assert standby_fits(settings.stream) == fits

"""A system is enabled by the setting or in the home, and its declarations are read from then on."""

from pathlib import Path

import pytest

from cli.systems import change_systems
from include.declarations.load import load_catalog
from include.errors import SettingsError
from include.settings import Settings
from include.settings.systems import known_systems, system_folder


def test_no_system_is_enabled_by_default(tmp_path: Path) -> None:
    assert Settings.of(home=tmp_path).declaration_folders == ()
    assert "pos" in known_systems()


def test_a_system_of_the_setting_is_read(tmp_path: Path) -> None:
    settings = Settings.of(home=tmp_path, systems="pos", read_models_dir=tmp_path)
    assert settings.declaration_folders == (system_folder("pos"), tmp_path)
    assert "trend" in load_catalog(settings.declaration_folders).routes


def test_a_system_that_is_enabled_in_the_home_stays_enabled(tmp_path: Path) -> None:
    assert change_systems(tmp_path, enable=("pos",)) == ("pos",)
    assert change_systems(tmp_path, enable=("pos",)) == ("pos",)
    assert Settings.of(home=tmp_path, systems="pos").enabled_systems == ("pos",)
    assert Settings.of(home=tmp_path).enabled_systems == ("pos",)
    assert change_systems(tmp_path, disable=("pos",)) == ()
    assert Settings.of(home=tmp_path).enabled_systems == ()


def test_an_unknown_system_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no system 'sop'\. Available: .*pos"):
        change_systems(tmp_path, enable=("sop",))
    with pytest.raises(SettingsError, match=r"no system 'sop'\. Available: .*pos"):
        Settings.of(home=tmp_path, systems="sop")


def test_a_system_that_this_release_lacks_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "systems").write_text("pos\nfuture\n")
    assert Settings.of(home=tmp_path).enabled_systems == ("pos",)

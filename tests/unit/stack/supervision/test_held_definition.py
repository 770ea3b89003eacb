"""The definition of a server whose sockets are held stays the same, whatever changes for the server itself."""

import json
from pathlib import Path

import pytest

from include.settings import Settings
from stack import plan
from stack.plan import KEEP, REPLACE, PlannedProcess
from stack.supervision import configuration
from stack.supervision.configuration import (
    SecretsFile,
    configuration_path,
    held_files,
    secrets_path,
    write_configuration,
)
from stack.supervision.process import Held, Process

# No process has this id: only the link tells what runs.
PID = 2**30


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "read_models").mkdir()
    return Settings.of(home=tmp_path / "home", read_models_dir=tmp_path / "read_models")


def held(sockets: int = 2, port: int = 8090) -> Process:
    return Process(
        "held",
        ("/bin/true",),
        1,
        bool,
        port=port,
        reads_declarations=True,
        held=Held("127.0.0.1", sockets),
    )


def definition(settings: Settings, process: Process) -> str:
    write_configuration(settings, [process])
    return configuration_path(settings.home).read_text(encoding="utf-8")


def test_only_other_sockets_change_it(settings: Settings) -> None:
    before = definition(settings, held())

    assert settings.read_models_dir is not None
    (settings.read_models_dir / "further.py").write_text("DECLARATIONS = []")
    assert definition(settings, held()) == before
    assert definition(settings.changed(stream_pace="throughput"), held()) == before
    assert len({before, definition(settings, held(3)), definition(settings, held(port=8091))}) == 3


def test_neither_the_folder_of_the_release_nor_its_tools_change_it(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = definition(settings, held())
    monkeypatch.setattr(configuration, "CHECKOUT", tmp_path / "another")
    (tmp_path / "tools").symlink_to(settings.tools)

    assert definition(settings.changed(tools=tmp_path / "tools"), held()) == before


def test_the_plan_compares_with_the_server_that_runs(settings: Settings) -> None:
    files = held_files(settings.home, "held")
    before = write_configuration(settings, [held()])["held"]
    files.set_description(str(before))
    changed = settings.changed(stream_pace="throughput")

    def planned(present: Settings) -> PlannedProcess:
        return plan._planned(present, held(), PID, SecretsFile(secrets_path(settings.home)))

    assert planned(settings) == PlannedProcess("held", KEEP)
    assert planned(changed) == PlannedProcess("held", REPLACE, ("FOLDLAKE_STREAM_PACE",))

    after = write_configuration(changed, [held()])["held"]
    # Until the new server has replaced it.
    assert planned(changed).action == REPLACE
    files.set_description(str(after))
    assert planned(changed).action == KEEP
    assert json.loads(files.present.read_text())["name"] == "held"

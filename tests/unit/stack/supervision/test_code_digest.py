"""A process is replaced when the code that it runs has changed, and only then."""

import subprocess
import sys
from pathlib import Path

import pytest

from include.settings import CHECKOUT, Settings
from stack.lifecycle import all_processes
from stack.supervision import code_digest as module
from stack.supervision.code_digest import SUFFIXES, code_digest

PARTS = ("include", "requirements.txt")
# Other files in these folders, which change nothing that runs.
WITHOUT_EFFECT = {".md", ".txt", ".typed", ".pyc"}
PROGRAMS = {
    "node-1-http": ("query_api.server",),
    "node-1-materializer": ("query_api.materializer.__main__",),
    "stream-supervisor": ("stack.components.stream_process", "stack.launchers.driver_submit"),
}
LIST_MODULES = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(*(file for one in list(sys.modules.values()) if (file := getattr(one, "__file__", None))), sep="\\n")
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("include/code.py", "include/part/page.html", "include/read_models/model.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    (tmp_path / "requirements.txt").write_text("1")
    return tmp_path


def digest(checkout: Path) -> str:
    module._part_digest.cache_clear()
    return code_digest(PARTS, checkout)


@pytest.mark.parametrize(
    "name", ["include/code.py", "include/part/page.html", "include/new.py", "requirements.txt"]
)
def test_names_and_contents_change_it(checkout: Path, name: str) -> None:
    before = digest(checkout)

    (checkout / name).write_text("2")

    assert digest(checkout) != before


@pytest.mark.parametrize(
    "name",
    [
        "include/read_models/model.py",
        "include/read_models/schemas/Event.avsc",
        "include/__pycache__/code.py",
        "include/.code.py.swp",
        "include/README.md",
        "query_api/server.py",
    ],
)
def test_declarations_caches_and_other_folders_do_not(checkout: Path, name: str) -> None:
    before = digest(checkout)
    (checkout / name).parent.mkdir(parents=True, exist_ok=True)

    (checkout / name).write_text("2")
    (checkout / "include/code.py").touch()

    assert digest(checkout) == before


def test_another_folder_with_the_same_code_has_the_same_digest(checkout: Path) -> None:
    before = digest(checkout)

    assert digest(checkout.rename(checkout.with_name("moved"))) == before


def test_every_kind_of_file_is_known() -> None:
    found = {
        path.suffix
        for folder in ("dags", "include", "query_api", "spark_jobs", "stack")
        for path in (CHECKOUT / folder).rglob("*")
        if path.is_file()
    }

    assert found <= SUFFIXES | WITHOUT_EFFECT


def test_foldlake_s_own_processes_have_code(tmp_path: Path) -> None:
    settings = Settings.of(home=tmp_path)

    assert {process.name for process in all_processes(settings) if not process.code} <= {
        "kafka",
        "registry",
        "redis",
    }
    parts = {part for process in all_processes(settings) for part in process.code}
    assert [part for part in parts if not (CHECKOUT / part).exists()] == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_process_imports_nothing_else_of_the_checkout(tmp_path: Path, name: str) -> None:
    process = next(one for one in all_processes(Settings.of(home=tmp_path)) if one.name == name)
    done = subprocess.run(
        [sys.executable, "-c", LIST_MODULES, *PROGRAMS[name]],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )

    files = [Path(line) for line in done.stdout.splitlines()]
    # Without the tools, which are in a hidden folder of most checkouts.
    own = [
        relative
        for file in files
        if file.is_relative_to(CHECKOUT)
        and not (relative := file.relative_to(CHECKOUT)).parts[0].startswith(".")
    ]
    code = [Path(part) for part in process.code]
    assert len(own) > 50
    assert [
        file
        for file in own
        # Its folders' `__init__.py` are empty.
        if file.name != "__init__.py" and not any(file.is_relative_to(part) for part in code)
    ] == []

"""A new query needs only a new file in the folder of specifications."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from spark_jobs.streaming.query_set import QuerySpecError, SpecDiscovery, spec_modules

NO_CONTEXT: Any = None
PACKAGE = "specs_of_a_test"
MODULE = """
from include.errors import KafkaUnavailableError
from tests.support.query_specs import spec
calls = []

def query_specs(context):
    calls.append(context)
    if len(calls) > 1:
        raise KafkaUnavailableError("no broker")
    return [spec({name!r})]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
        del sys.modules[name]


def package() -> ModuleType:
    importlib.invalidate_caches()
    return importlib.import_module(PACKAGE)


def test_driver_finds_each_kind_of_query() -> None:
    names = [module.__name__.rpartition(".")[2] for module in spec_modules()]
    assert names == ["dead_letters", "emissions", "flows", "folds", "periodic_emissions"]


def test_specifications_of_all_modules_are_found_and_kept_while_kafka_is_unavailable(folder: Path) -> None:
    for name in ("routes", "emissions"):
        (folder / f"{name}.py").write_text(MODULE.format(name=name))
    discovery = SpecDiscovery(NO_CONTEXT, spec_modules(package()))

    first = discovery.specs()
    assert [spec.name for spec in first] == ["emissions", "routes"]
    assert discovery.specs() == first


def test_threads_beside_the_queries_are_found_in_the_modules_that_have_some(folder: Path) -> None:
    (folder / "routes.py").write_text(MODULE.format(name="routes"))
    text = f"{MODULE.format(name='ticks')}\ndef driver_workers(context):\n    return [(context, 'ticks')]\n"
    (folder / "ticks.py").write_text(text)

    discovery = SpecDiscovery(NO_CONTEXT, spec_modules(package()))

    found: list[object] = list(discovery.workers())
    assert found == [(NO_CONTEXT, "ticks")]


def test_module_without_specifications_is_an_error(folder: Path) -> None:
    (folder / "routes.py").touch()
    with pytest.raises(
        QuerySpecError, match=r"specs_of_a_test.routes has no function `query_specs\(context\)`"
    ):
        spec_modules(package())


def test_two_queries_of_the_same_name_are_an_error(folder: Path) -> None:
    for file in ("routes", "emissions"):
        (folder / f"{file}.py").write_text(MODULE.format(name="same"))
    with pytest.raises(QuerySpecError, match="have the name same"):
        SpecDiscovery(NO_CONTEXT, spec_modules(package())).specs()

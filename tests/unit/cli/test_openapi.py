"""`./foldlake openapi` writes the contract without a node."""

import json
from pathlib import Path

import pytest

from cli.openapi import run
from query_api.http.contract.document import openapi_document
from tests.support.contract import SYSTEMS, demo_catalog


@pytest.fixture(autouse=True)
def demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOLDLAKE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FOLDLAKE_SYSTEMS", ",".join(SYSTEMS))


def test_the_document_is_that_of_the_enabled_read_models(tmp_path: Path) -> None:
    output = tmp_path / "folder" / "openapi.json"

    run(output)

    assert json.loads(output.read_text(encoding="utf-8")) == openapi_document(demo_catalog())


def test_the_document_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    run(None)

    printed = capsys.readouterr()
    assert json.loads(printed.out)["openapi"].startswith("3.1")
    assert printed.err == ""

"""The examples of docs/kubernetes.md that need no cluster: certificates, values, and the installation, which Helm only renders."""

import re
from pathlib import Path

import pytest
import yaml

from include.settings import CHECKOUT, Settings
from tests.support.documentation.page_blocks import blocks, blocks_run
from tests.support.documentation.page_follower import PageFollower
from tests.support.kubernetes.helm import CHART, helm, run_helm, schema_errors

PAGE = "docs/kubernetes.md"
FROM_FILE = re.compile(r"--from-file=(ca/\S+)")
MANIFEST = re.compile(r"^MANIFEST:\n(.*?)^NOTES:$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder like a checkout in which a reader has followed the page; `installed` has the output of Helm."""
    found, tools = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("tools")
    command = tools / "helm"
    command.write_text(f'#!/bin/sh\nexec {helm()} "$@" --dry-run=client > installed\n', encoding="utf-8")
    command.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(tools), prepend=":")
        follower = PageFollower(found, Settings.of(home=tmp_path_factory.mktemp("home")))
        for block in blocks_run("helm"):
            follower.follow(block)
    return found


def test_the_installation_makes_valid_objects(folder: Path) -> None:
    manifest = MANIFEST.search((folder / "installed").read_text(encoding="utf-8"))
    assert manifest is not None
    objects = [one for one in yaml.safe_load_all(manifest[1]) if one]

    assert {one["metadata"]["name"] for one in objects} >= {"foldlake-node", "foldlake-writer"}
    assert [error for one in objects for error in schema_errors(one)] == []


def test_the_secret_has_the_certificates_that_the_page_creates(folder: Path) -> None:
    named = FROM_FILE.findall((CHECKOUT / PAGE).read_text(encoding="utf-8"))

    assert len(named) == 5
    assert [path for path in named if not (folder / path).is_file()] == []


def test_the_pods_mount_the_read_models(folder: Path) -> None:
    files = [block.file for block in blocks(PAGE, "yaml")]
    values = [f"--values={folder / file}" for file in files]

    rendered = run_helm("template", "foldlake", CHART, *values)

    assert len(files) == 2
    assert {"configMap": {"name": "read-models"}} in [
        {"configMap": volume["configMap"]}
        for one in yaml.safe_load_all(rendered)
        if one and one["kind"] == "StatefulSet"
        for volume in one["spec"]["template"]["spec"]["volumes"]
        if "configMap" in volume
    ]

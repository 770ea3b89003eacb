"""docker-compose.yaml on a Docker engine: `./foldlake test -m compose` (minutes, and gigabytes of images)."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from include.settings import CHECKOUT, Settings
from stack.tools import Tools
from tests.support.balance_copy import MODULE
from tests.support.compose.engine import Engine, NoEngineError, running_engine
from tests.support.compose.project import OWN_MODEL, Project, temporary_project
from tests.support.compose.standins import official_images, provide

log = logging.getLogger(__name__)


@pytest.fixture(scope="package")
def engine() -> Iterator[Engine]:
    settings = Settings.of()
    try:
        with running_engine(settings.tools / "docker") as found:
            compose = yaml.safe_load((CHECKOUT / "docker-compose.yaml").read_text(encoding="utf-8"))
            replaced = provide(found, official_images(compose), Tools(settings.tools))
            log.info("stand-ins: %s", ", ".join(replaced) or "none")
            yield found
    except NoEngineError as error:
        pytest.skip(f"no Docker engine: {error}")


@pytest.fixture(scope="package")
def project(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The whole project with a read model in a folder of the host, built and healthy."""
    folder: Path = tmp_path_factory.mktemp("compose")
    own = folder / "read-models"
    own.mkdir()
    (own / f"{OWN_MODEL}.py").write_text(MODULE.format(name=OWN_MODEL), encoding="utf-8")
    # Read by the user of the image, who is another one than that of the tests.
    own.chmod(0o755)
    settings = {"FOLDLAKE_COMPACTION_INTERVAL_S": "0", "FOLDLAKE_READ_MODELS_DIR": str(own)}
    with temporary_project(engine, folder, settings) as project:
        log.info("up --build --wait: %.0f s", project.up(build=True))
        yield project

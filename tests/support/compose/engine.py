"""A Docker engine with Compose: the machine's own, or one that is started for the tests."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.waiting import wait_until

# The first Compose with `env_file: required: false` is 2.24.
COMPOSE_MODULE = "github.com/docker/compose/v2/cmd@v2.29.7"
PACKAGES = ("docker.io", "mmdebstrap")
START_TIMEOUT_S = 60.0
INSTALL_TIMEOUT_S = 1200.0


class NoEngineError(Exception):
    """No engine can be had on this machine; the message says what is missing."""


class DockerError(Exception):
    """A command of `docker` failed; the message ends with its output."""


@dataclass(frozen=True)
class Engine:
    """An engine; folder: keeps what the tests install and download between runs."""

    environment: dict[str, str] = field(repr=False)
    folder: Path

    def docker(self, *arguments: str | Path, timeout_s: float = 600.0, cwd: Path | None = None) -> str:
        """Return what a command of `docker` prints; raises DockerError if it fails."""
        finished = self.attempt(*arguments, timeout_s=timeout_s, cwd=cwd)
        if finished.returncode != 0:
            raise DockerError(f"{finished.args}: {finished.stdout[-4000:]}\n{finished.stderr[-4000:]}")
        return finished.stdout.strip()

    def attempt(
        self, *arguments: str | Path, timeout_s: float = 600.0, cwd: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of `docker`, which may fail."""
        return subprocess.run(
            ["docker", *arguments],
            env=self.environment,
            cwd=cwd,
            timeout=timeout_s,
            capture_output=True,
            text=True,
            check=False,
        )


@contextmanager
def running_engine(folder: Path) -> Iterator[Engine]:
    """Find the machine's engine, or install and run one during the block. `folder` keeps its data and Compose.

    Raises NoEngineError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    engine = Engine(dict(os.environ), folder)
    if shutil.which("docker") and engine.attempt("info").returncode == 0:
        _require_compose(engine)
        yield engine
        return
    _install()
    socket = folder / "docker.sock"
    own = Engine({**os.environ, "DOCKER_HOST": f"unix://{socket}"}, folder)
    with (folder / "dockerd.log").open("ab") as log:
        command = ("dockerd", "--data-root", folder / "data", "--exec-root", folder / "exec")
        options = ("--host", f"unix://{socket}", "--pidfile", folder / "dockerd.pid")
        # Not in the terminal's process group: after Ctrl-C, the tests still remove their containers.
        daemon = subprocess.Popen([*command, *options], stdout=log, stderr=log, start_new_session=True)
    try:
        wait_until(lambda: _answers(own, daemon), "the engine answers", START_TIMEOUT_S)
        _require_compose(own)
        yield own
    finally:
        daemon.terminate()
        daemon.wait(START_TIMEOUT_S)


def _answers(engine: Engine, daemon: "subprocess.Popen[bytes]") -> bool:
    if daemon.poll() is not None:
        log = (engine.folder / "dockerd.log").read_text(encoding="utf-8", errors="replace")
        raise NoEngineError(f"dockerd has ended: {log[-500:]}")
    return engine.attempt("info").returncode == 0


def _install() -> None:
    missing = [name for name in ("dockerd", "docker", "mmdebstrap") if shutil.which(name) is None]
    if missing and (os.geteuid() != 0 or shutil.which("apt-get") is None):
        raise NoEngineError(
            f"{', '.join(missing)} is not installed, and only root of a Debian can install it"
        )
    if os.geteuid() != 0:
        raise NoEngineError("only root can start dockerd, and no running engine answers")
    if missing:
        for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *PACKAGES]):
            subprocess.run(["apt-get", "--quiet", *arguments], timeout=INSTALL_TIMEOUT_S, check=True)


def _require_compose(engine: Engine) -> None:
    """Install Compose from its source if `docker` does not have it."""
    if engine.attempt("compose", "version").returncode == 0:
        return
    if shutil.which("go") is None:
        raise NoEngineError("`docker compose` is not installed, and Go, which could build it, is not either")
    config = engine.folder / "config"
    engine.environment["DOCKER_CONFIG"] = str(config)
    plugin = config / "cli-plugins" / "docker-compose"
    if not plugin.exists():
        plugin.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "GOPATH": str(engine.folder / "go"), "GOFLAGS": "-mod=mod"}
        subprocess.run(
            ["go", "install", COMPOSE_MODULE], env=environment, timeout=INSTALL_TIMEOUT_S, check=True
        )
        shutil.move(engine.folder / "go" / "bin" / "cmd", plugin)

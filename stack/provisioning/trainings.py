"""The JVMs that are trained once, so that each later one starts faster. Standard library only."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from stack.provisioning.layout import CHECKOUT, DRIVER_CACHE, LAKE_ARCHIVE, Layout

# Of other programs; an option of theirs could make what a training writes unusable without it.
JAVA_VARIABLES = {"JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"}


@dataclass(frozen=True)
class Training:
    """A program of `stack/train_*.py` that writes the file of a part."""

    part: str
    module: str
    trained: str
    duration: str

    def file(self, layout: Layout) -> Path:
        """Return the file that it writes, which is missing if it fails."""
        return layout.driver_cache if self.part == DRIVER_CACHE else layout.lake_archive


TRAININGS = (
    Training(DRIVER_CACHE, "stack.train_driver", "the stream driver", "about two minutes"),
    Training(LAKE_ARCHIVE, "stack.train_lake", "the lake's jobs", "about a minute"),
)


def train(layout: Layout, training: Training) -> None:
    """Write the file of a part; without it, what is trained works, and starts more slowly."""
    if not (CHECKOUT / "spark_jobs" / "stream.py").exists():
        # An image's build downloads everything before it copies the code.
        return
    trained = training.trained
    print(
        f"Training {trained} on synthetic events, to start faster (once, {training.duration}).",
        file=sys.stderr,
    )
    layout.mark_unready(training.part)
    file = training.file(layout)
    file.unlink(missing_ok=True)
    command: list[str | Path] = [layout.python("main"), "-P", "-m", training.module, file]
    finished = subprocess.run(command, env=_environment(layout), cwd=CHECKOUT, check=False)
    if finished.returncode != 0:
        print(
            f"The training of {trained} has failed (see above). Foldlake works without it, and starts more slowly."
            f" Hint: remove {layout.stamp(training.part)} to have the next command repeat the training.",
            file=sys.stderr,
        )
    # Also after a failure: it would keep every command from running.
    layout.mark_ready(training.part)


def _environment(layout: Layout) -> dict[str, str]:
    """Return the environment of a training, which must not use the user's servers."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("FOLDLAKE_") and name not in JAVA_VARIABLES
    }
    return kept | {
        "FOLDLAKE_TOOLS": str(layout.root),
        "JAVA_HOME": str(layout.java_home),
        "PYTHONPATH": str(CHECKOUT),
    }

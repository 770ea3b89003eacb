"""The run of a plan as a stage sees it, without Airflow."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from include.rebuild.stage import StageRun
from include.settings import Settings
from include.versions.version_record import Stage, Version


def stage_run(
    settings: Settings,
    read_models: tuple[str, ...],
    form: Mapping[str, Any],
    *,
    run_id: str = "run-a",
    results: Mapping[str, Any] | None = None,
    set_note: Callable[[str], None] = print,
) -> StageRun:
    """Return a run that was requested now, with these results of earlier stages, by their names."""
    return StageRun(
        settings,
        run_id,
        read_models,
        form,
        form,
        datetime.now(UTC),
        set_note=set_note,
        result_of=dict(results or {}).__getitem__,
    )


class RegisteredRun(StageRun):
    """A run whose versions are these, instead of those in a version registry."""

    @property
    def versions(self) -> dict[str, Version]:
        """The versions: v7 of the first read model, v3 of the second."""
        return {name: version(number) for name, number in zip(self.read_models, (7, 3), strict=False)}


def version(number: int, source_topic: str = "") -> Version:
    """Return a version that run-a builds."""
    topic = f"topic.v{number}"
    return Version(number, Stage.CANDIDATE, 2, topic, "why", "now", run_id="run-a", source_topic=source_topic)

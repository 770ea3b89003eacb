"""`python -m cli.documentation.reference.dag_forms FILE`: writes the DAGs and their forms as JSON, in a process with Airflow's configuration."""

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable


def main(output: Path, folder: str) -> int:
    """Write the DAGs of a folder; returns an exit code."""
    bag = DagBag(folder)
    for path, error in bag.import_errors.items():
        print(f"{path}: {error}", file=sys.stderr)
    output.write_text(json.dumps([_dag(dag) for _, dag in sorted(bag.dags.items())]), encoding="utf-8")
    return 1 if bag.import_errors else 0


def _dag(dag: Any) -> dict[str, Any]:  # noqa: ANN401 - Airflow has no types here
    return {
        "id": dag.dag_id,
        "about": dag.description,
        "schedule": _schedule(dag.schedule),
        "parameters": [_parameter(name, dag.params.get_param(name)) for name in dag.params],
    }


def _schedule(schedule: Any) -> str:  # noqa: ANN401 - as above
    if schedule is None:
        return "none; it is triggered"
    if isinstance(schedule, timedelta):
        return f"every {schedule.total_seconds() / 60:g} minutes"
    if isinstance(schedule, AssetOrTimeSchedule):
        return f"{_schedule(schedule.timetable)}, and after an event of its assets"
    if isinstance(schedule, CronTriggerTimetable):
        return f"`{schedule.expression}` ({schedule.timezone})"
    return "without an end" if schedule == "@continuous" else str(schedule)


def _parameter(name: str, parameter: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    return {
        "name": name,
        # A parameter without a default has an object of Airflow's here.
        "default": parameter.value if isinstance(parameter.value, str | int | float | list) else None,
        "title": parameter.schema.get("title", ""),
        "about": parameter.description or "",
        "type": parameter.schema.get("type"),
        "values": parameter.schema.get("enum") or parameter.schema.get("items", {}).get("enum", []),
        "limits": [parameter.schema.get("minimum"), parameter.schema.get("maximum")],
    }


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))

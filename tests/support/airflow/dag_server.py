"""`python -m tests.support.airflow.dag_server`: describes the DAGs of each environment that a line of its standard input gives.

Airflow reads its configuration when it is imported, which takes most of the time of a load: this process imports it once, and forks another
one for each environment, as Airflow forks one for each DAG file.
"""

import json
import os
import sys
from typing import Any

from airflow import plugins_manager
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization

HEAVY = {"pyspark", "delta", "great_expectations", "pandas", "flask"}


def main() -> None:
    """Write a description for each line of the standard input, which has a file for it, and variables of the environment."""
    for line in sys.stdin:
        path, environment = json.loads(line)
        child = os.fork()
        if child == 0:
            os.environ.update(environment)
            bag = DagBag(environment["AIRFLOW__CORE__DAGS_FOLDER"])
            with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - quick
                json.dump(description(bag), file)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stderr.write(f"{os.waitstatus_to_exitcode(status)}\n")


def description(bag: Any) -> dict[str, Any]:  # noqa: ANN401 - Airflow has no types here
    """Return the DAGs, their tasks, and the errors."""
    plugins = plugins_manager.get_plugin_info(["external_views"])
    return {
        "errors": bag.import_errors,
        "serialized": [DagSerialization.to_dict(dag)["dag"]["dag_id"] for dag in bag.dags.values()],
        "seconds": [stat.duration.total_seconds() for stat in bag.dagbag_stats],
        "heavy": sorted(HEAVY & set(sys.modules)),
        "views": [view for plugin in plugins for view in plugin["external_views"]],
        "dags": {dag.dag_id: _dag(dag) for dag in bag.dags.values()},
    }


def _dag(dag: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    params = {name: dag.params.get_param(name) for name in dag.params}
    return {
        "groups": {name: sorted(group.children) for name, group in dag.task_group_dict.items() if name},
        "doc": dag.doc_md,
        "tags": sorted(dag.tags),
        "owner": dag.owner,
        "description": dag.description,
        "start": str(dag.start_date),
        "active_runs": dag.max_active_runs,
        "form": list(dag.params),
        "empty": {
            name: param.schema.get("type") for name, param in params.items() if param.value in ("", None)
        },
        "tasks": {task.task_id: _task(task) for task in dag.tasks},
    }


def _task(task: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    timeout = task.execution_timeout
    return {
        "operator": task.task_type,
        "retries": task.retries,
        "pool": task.pool,
        "priority": task.priority_weight,
        "weight_rule": type(task.weight_rule).__name__,
        "outlets": [asset.name for asset in task.outlets],
        "upstream": sorted(task.upstream_task_ids),
        "rule": str(task.trigger_rule.value),
        "doc": task.doc_md,
        "timeout_s": timeout.total_seconds() if timeout else None,
        "application": getattr(task, "application", None),
        "arguments": getattr(task, "application_args", None),
    }


if __name__ == "__main__":
    main()

"""Loads the DAGs as Airflow does, and describes them."""

import json
import os
import subprocess
import sys
from typing import Any

# In a process of its own: Airflow reads its configuration when it is imported.
LOAD = """
import json, sys
from airflow import plugins_manager
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization
bag = DagBag(sys.argv[1])
json.dump({
    "errors": bag.import_errors,
    "serialized": [DagSerialization.to_dict(dag)["dag"]["dag_id"] for dag in bag.dags.values()],
    "seconds": [stat.duration.total_seconds() for stat in bag.dagbag_stats],
    "heavy": sorted({"pyspark", "delta", "great_expectations", "pandas", "flask"} & set(sys.modules)),
    "views": [view for plugin in plugins_manager.get_plugin_info(["external_views"]) for view in plugin["external_views"]],
    "dags": {
        dag.dag_id: {
            "groups": {group_id: sorted(group.children) for group_id, group in dag.task_group_dict.items() if group_id},
            "doc": dag.doc_md, "tags": sorted(dag.tags), "owner": dag.owner, "description": dag.description,
            "start": str(dag.start_date), "active_runs": dag.max_active_runs, "form": list(dag.params),
            "empty": {name: param.schema.get("type") for name, param in (
                (name, dag.params.get_param(name)) for name in dag.params) if param.value in ("", None)},
            "tasks": {task.task_id: {
                "operator": task.task_type, "retries": task.retries, "pool": task.pool,
                "priority": task.priority_weight, "weight_rule": type(task.weight_rule).__name__, "outlets": [asset.name for asset in task.outlets],
                "upstream": sorted(task.upstream_task_ids), "rule": str(task.trigger_rule.value), "doc": task.doc_md,
                "timeout_s": task.execution_timeout.total_seconds() if task.execution_timeout else None,
                "application": getattr(task, "application", None), "arguments": getattr(task, "application_args", None),
            } for task in dag.tasks},
        } for dag in bag.dags.values()
    },
}, sys.stdout)
"""


def load(environment: dict[str, str]) -> dict[str, Any]:
    """Return the DAGs of an environment, their tasks, and the errors."""
    folder = environment["AIRFLOW__CORE__DAGS_FOLDER"]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOAD, folder],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    answer: dict[str, Any] = json.loads(done.stdout[done.stdout.index('{"errors"') :])
    return answer

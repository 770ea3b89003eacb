"""The ids of checks, which the command line and Airflow's tasks share."""


def check_id(run_id: str, read_model: str) -> str:
    """Return the id under which a run of the DAG `quality` checks a read model."""
    return f"{run_id}-{read_model}"

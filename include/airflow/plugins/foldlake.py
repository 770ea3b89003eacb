"""Airflow's plugin: what happens when a run is ended in the web page, and the order of waiting tasks."""

from airflow.plugins_manager import AirflowPlugin

from include.airflow.runs import ended_run_listener
from include.airflow.runs.run_priority import RequestedFirst


class FoldlakePlugin(AirflowPlugin):
    """Registers the listener and the priority."""

    name = "foldlake"
    listeners = [ended_run_listener]  # noqa: RUF012 - as in Airflow's class
    priority_weight_strategies = [RequestedFirst]  # noqa: RUF012

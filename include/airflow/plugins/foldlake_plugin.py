"""Airflow's plugin: the status page in the navigation, what happens when a run is ended in the web page, and the order of waiting tasks."""

import os
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from include.airflow import run_hooks
from include.airflow.names import STATUS_PAGE
from include.airflow.run_hooks import RequestedFirst
from include.settings import Settings

# Layers of a lake, in the grey of Airflow's own icons.
ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='%2371717a' "
    "stroke-width='2' stroke-linecap='round'%3E%3Cpath d='M2 7c3-3 7-3 10 0s7 3 10 0M2 13c3-3 7-3 10 0s7 3 10 0M2 19c3-3 7-3 "
    "10 0s7 3 10 0'/%3E%3C/svg%3E"
)


def status_url() -> str:
    """Return the status page of the node that also serves the reports. The reader's browser must reach it.

    Airflow asks once. So the embedded stack names the page in the environment: another one restarts Airflow.
    """
    url = os.environ.get(STATUS_PAGE) or Settings().reports_base_url
    return f"{url.rstrip('/')}/"


class FoldlakePlugin(AirflowPlugin):
    """Adds the entry *Foldlake*, which shows the page in a frame, and registers the listener and the priority."""

    name = "foldlake"
    listeners = [run_hooks]  # noqa: RUF012 - as in Airflow's class
    priority_weight_strategies = [RequestedFirst]  # noqa: RUF012
    external_views: list[Any] = [  # noqa: RUF012 - as the base class declares it
        {
            "name": "Foldlake",
            "href": status_url(),
            "destination": "nav",
            "nav_top_level": True,
            "url_route": "foldlake",
            "icon": ICON,
        }
    ]

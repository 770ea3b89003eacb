"""The labels of read models in the dropdowns of forms: which version is live, and which ones there are besides."""

from collections.abc import Iterable
from typing import Any

import httpx

# DAG files are read every 30 s, and at the start of each task: a node on the same machine answers within milliseconds.
TIMEOUT_S = 0.5
PATH = "/api/read-models"
LIVE = "live"


def read_model_labels(
    reports_base_url: str, query_ports: Iterable[int], names: Iterable[str]
) -> dict[str, str]:
    """Return a label for each of these read models that has versions, as a query node knows them; empty if none answers.

    query_ports: of the nodes on this machine.
    A label follows a promotion when Airflow reads the DAG file again, within half a minute. It decides nothing.
    """
    try:
        own = (f"http://127.0.0.1:{port}" for port in query_ports)
        known = {str(model["name"]): model for model in _read_models((reports_base_url.rstrip("/"), *own))}
        return {name: _label(known[name]) for name in names if name in known}
    except (TypeError, KeyError, AttributeError):
        return {}  # another server answers at the node's address


def _label(model: dict[str, Any]) -> str:
    others = [
        f"v{version['version']} {version['stage']}"
        for version in model["versions"]
        if version["stage"] != LIVE
    ]
    live = "no live version" if model["live"] is None else f"v{model['live']} live"
    return f"{model['name']} ({', '.join([live, *others])})"


def _read_models(urls: Iterable[str]) -> list[dict[str, Any]]:
    for url in dict.fromkeys(urls):
        try:
            answer = httpx.get(f"{url}{PATH}", timeout=TIMEOUT_S, trust_env=False)
            found: list[dict[str, Any]] = answer.raise_for_status().json()
        except (httpx.HTTPError, ValueError):
            continue
        return found
    return []

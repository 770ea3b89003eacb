"""The section `services`: whether the servers answer on which the node, the stream and the jobs depend."""

from http import HTTPStatus
from typing import Any

import httpx

from query_api.status.node_view import NodeView

TIMEOUT_S = 2.0
# What stops working without the server, and what does not.
KAFKA_EFFECT = "Lookups are answered from the stores; commands are refused; nothing is folded."
REGISTRY_EFFECT = "Lookups and folds go on; new schemas wait."
AIRFLOW_EFFECT = "Lookups and folds go on; rebuilds, compaction and quality checks wait."


def read(view: NodeView) -> list[dict[str, Any]]:
    """Return each server: `service`, `is_up`, `detail` (empty if it is up) and `effect` of its absence."""
    return [_kafka(view), _registry(view), _airflow(view)]


def _kafka(view: NodeView) -> dict[str, Any]:
    state = view.state()
    if state is None:
        detail = "the materializer has not started yet"
    elif state.age_s() > view.settings.node.session_timeout_s:
        detail = f"unknown: the materializer has not reported for {state.age_s():.0f} s"
    else:
        detail = "" if state.is_kafka_reachable else state.waiting_for or "no answer yet"
    return _service("Kafka", detail, KAFKA_EFFECT, url=view.settings.kafka.bootstrap_servers)


def _registry(view: NodeView) -> dict[str, Any]:
    url = view.settings.registry.url
    return _service("Schema registry", _failure(f"{url}/subjects"), REGISTRY_EFFECT, url=url)


def _airflow(view: NodeView) -> dict[str, Any]:
    url = view.settings.airflow.base_url
    return _service("Airflow", _airflow_failure(f"{url}/api/v2/monitor/health"), AIRFLOW_EFFECT, url=url)


def _airflow_failure(url: str) -> str:
    try:
        health: dict[str, dict[str, Any]] = httpx.get(url, timeout=TIMEOUT_S, trust_env=False).json()
        unhealthy = sorted(name for name, part in health.items() if part.get("status") == "unhealthy")
    except (httpx.HTTPError, ValueError, AttributeError) as error:
        return f"{url} does not answer ({_reason(error)})"
    return f"not healthy: {', '.join(unhealthy)}" if unhealthy else ""


def _failure(url: str) -> str:
    try:
        answer = httpx.get(url, timeout=TIMEOUT_S, trust_env=False)
    except httpx.HTTPError as error:
        return f"{url} does not answer ({_reason(error)})"
    return "" if answer.status_code == HTTPStatus.OK else f"{url} answers {answer.status_code}"


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _service(name: str, detail: str, effect: str, url: str) -> dict[str, Any]:
    return {"service": name, "url": url, "is_up": not detail, "detail": detail, "effect": effect}

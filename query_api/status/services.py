"""The section `services`: whether the servers answer on which the node, the stream and the jobs depend."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx

from include.http_replies import REFUSED, is_json, without_credentials
from query_api.status.node_view import NodeView

TIMEOUT_S = 2.0
# What stops working without the server, and what does not.
KAFKA_EFFECT = "Lookups are answered from the stores; commands are refused; nothing is folded."
REGISTRY_EFFECT = "Lookups and folds go on; new schemas wait."
AIRFLOW_EFFECT = "Lookups and folds go on; rebuilds, compaction and quality checks wait."


@dataclass(frozen=True)
class ServiceEntry:
    """A server. detail: why it is not up; empty if it is. effect: of its absence."""

    service: str
    url: str
    is_up: bool
    detail: str
    effect: str


def read_services(view: NodeView) -> list[ServiceEntry]:
    """Return each server."""
    return [_kafka(view), _registry(view), _airflow(view)]


def _kafka(view: NodeView) -> ServiceEntry:
    state = view.state()
    if state is None:
        detail = "the materializer has not started yet"
    elif state.age_s() > view.settings.node.session_timeout_s:
        detail = f"unknown: the materializer has not reported for {state.age_s():.0f} s"
    else:
        detail = "" if state.is_kafka_reachable else state.waiting_for or "no answer yet"
    return _service("Kafka", detail, KAFKA_EFFECT, url=view.settings.kafka.bootstrap_servers)


def _registry(view: NodeView) -> ServiceEntry:
    registry = view.settings.registry.connection
    client = {"auth": registry.credentials, "verify": registry.tls_context()}
    _, problem = _answer(f"{registry.url}/subjects", "FOLDLAKE_SCHEMA_REGISTRY_URL", **client)
    return _service("Schema registry", problem, REGISTRY_EFFECT, url=registry.url)


def _airflow(view: NodeView) -> ServiceEntry:
    url = view.settings.airflow.base_url
    return _service(
        "Airflow",
        _airflow_failure(f"{url}/api/v2/monitor/health"),
        AIRFLOW_EFFECT,
        url=view.settings.airflow.pages_url,
    )


def _airflow_failure(url: str) -> str:
    answer, problem = _answer(url, "FOLDLAKE_AIRFLOW_URL")
    if answer is None:
        return problem
    try:
        health: dict[str, dict[str, Any]] = answer.json()
        unhealthy = sorted(name for name, part in health.items() if part.get("status") == "unhealthy")
    except (ValueError, AttributeError):
        return f"{without_credentials(url)} is not Airflow: check FOLDLAKE_AIRFLOW_URL"
    return f"not healthy: {', '.join(unhealthy)}" if unhealthy else ""


def _answer(url: str, setting: str, **client: Any) -> tuple[httpx.Response | None, str]:  # noqa: ANN401 - httpx's own options
    """Return the answer in JSON, or None and why there is none."""
    try:
        answer = httpx.get(url, timeout=TIMEOUT_S, trust_env=False, **client)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return None, f"{without_credentials(url)} does not answer ({_reason(error)})"
    problem = f"{without_credentials(url)} answers {answer.status_code}"
    if answer.status_code in REFUSED:
        return None, f"{problem}: check the credentials in {setting}"
    if answer.status_code == HTTPStatus.NOT_FOUND or (
        answer.is_success and not is_json(answer.headers.get("Content-Type"))
    ):
        return None, f"{problem}, as no such server does: check {setting}"
    return (answer, "") if answer.is_success else (None, problem)


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _service(name: str, detail: str, effect: str, url: str) -> ServiceEntry:
    return ServiceEntry(name, without_credentials(url), not detail, detail, effect)

"""The page's section of servers: whether each one serves this node, and which setting to correct if not."""

from collections.abc import Iterator
from typing import Any

import pytest

from include.settings import Settings
from query_api.cluster.node_state import NodeState
from query_api.status import services
from query_api.status.node_view import NodeView
from tests.support.http.played_server import HTML, PlayedServer, Reply, played_server

JSON = {"Content-Type": "application/json"}


class View(NodeView):
    """A node whose materializer has not reported yet."""

    def state(self) -> NodeState | None:
        """Return none."""
        return None


@pytest.fixture
def server() -> Iterator[PlayedServer]:
    with played_server() as server:
        yield server


def shown(server: PlayedServer) -> dict[str, services.ServiceEntry]:
    url = server.url.replace("//", "//me:secret@")
    nothing: Any = None
    view = View(Settings.of(schema_registry_url=url, airflow_url=url), nothing, nothing)
    return {service.service: service for service in services.read_services(view)}


def test_servers_that_answer_are_up_and_shown_without_their_passwords(server: PlayedServer) -> None:
    server.replies["GET /subjects"] = Reply(200, "[]", JSON)
    health = {"metadatabase": {"status": "healthy"}, "triggerer": {"status": None}}
    server.replies["GET /api/v2/monitor/health"] = Reply(200, health, JSON)

    found = shown(server)

    assert found["Schema registry"].is_up
    assert found["Airflow"].is_up
    assert {found[name].url for name in ("Schema registry", "Airflow")} == {server.url}


@pytest.mark.parametrize(
    ("reply", "registry", "airflow"),
    [
        (Reply(401, HTML), "check the credentials in FOLDLAKE_SCHEMA_REGISTRY_URL", "FOLDLAKE_AIRFLOW_URL"),
        (Reply(403, HTML), "check the credentials in FOLDLAKE_SCHEMA_REGISTRY_URL", "FOLDLAKE_AIRFLOW_URL"),
        (Reply(404, HTML), "check FOLDLAKE_SCHEMA_REGISTRY_URL", "check FOLDLAKE_AIRFLOW_URL"),
        (Reply(200, HTML), "check FOLDLAKE_SCHEMA_REGISTRY_URL", "check FOLDLAKE_AIRFLOW_URL"),
        (Reply(429, HTML), "answers 429", "answers 429"),
        (Reply(500, HTML), "answers 500", "answers 500"),
        (Reply(302, HTML), "answers 302", "answers 302"),
    ],
)
def test_server_that_does_not_serve_the_node_is_named_with_its_setting(
    server: PlayedServer, reply: Reply, registry: str, airflow: str
) -> None:
    server.otherwise = reply

    found = shown(server)

    assert registry in found["Schema registry"].detail
    assert airflow in found["Airflow"].detail
    assert not any("secret" in str(service) for service in found.values())

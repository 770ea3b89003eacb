"""Commands while the schema registry refuses the node, is busy, or is another server: only a rejected schema is one."""

from collections.abc import Iterator

import pytest
from flask import Flask
from flask.testing import FlaskClient

from include.declarations.load import load_catalog
from include.settings import Settings
from query_api.http.commands.command_routes import commands_blueprint
from query_api.http.problems import ProblemError
from tests.support.http.played_server import HTML, PlayedServer, Reply, played_server

COMMAND = "/api/balance.addFunds"
BODY = {"customerId": "c", "amount": 1}


@pytest.fixture(scope="module")
def registry() -> Iterator[PlayedServer]:
    with played_server() as server:
        yield server


@pytest.fixture
def client(registry: PlayedServer) -> FlaskClient:
    settings = Settings.of(
        schema_registry_url=registry.url, kafka_bootstrap="127.0.0.1:1", node_command_timeout_s=2
    )
    app = Flask(__name__)
    app.testing = True
    app.register_blueprint(commands_blueprint(settings, load_catalog(settings.declaration_folders).apis))
    return app.test_client()


@pytest.mark.parametrize(
    ("reply", "detail", "retry_after_s"),
    [
        (Reply(401, HTML), "refuses this caller", 2),
        (Reply(403, {"error_code": 40301, "message": "no"}), "FOLDLAKE_SCHEMA_REGISTRY_URL", 2),
        (Reply(404, HTML), "does not reply as a registry", 2),
        (Reply(408, HTML), "cannot serve the request now", 2),
        (Reply(429, HTML, {"Retry-After": "9"}), "cannot serve the request now", 9),
        (Reply(500, {"error_code": 500, "message": "no"}), "fails at the request", 2),
        (Reply(200, HTML), "does not reply as a registry", 2),
        (Reply(200, "{}", delay_s=1.5), "does not respond", 2),
    ],
)
def test_command_is_safe_to_repeat_while_the_registry_does_not_serve_the_node(
    registry: PlayedServer, client: FlaskClient, reply: Reply, detail: str, retry_after_s: int
) -> None:
    registry.otherwise = reply

    with pytest.raises(ProblemError) as raised:
        client.post(COMMAND, json=BODY)

    problem = raised.value
    assert (problem.status, problem.slug) == (503, "log-unavailable")
    assert detail in problem.detail
    assert problem.retry_after_s == retry_after_s


@pytest.mark.parametrize("status", [409, 422])
def test_schema_that_the_registry_rejects_is_named(
    registry: PlayedServer, client: FlaskClient, status: int
) -> None:
    registry.otherwise = Reply(status, {"error_code": status, "message": "incompatible"})

    with pytest.raises(
        ProblemError, match=r"rejects the schema for subject balance-.*FundsAdded: incompatible"
    ) as raised:
        client.post(COMMAND, json=BODY)

    assert (raised.value.status, raised.value.slug) == (500, "schema-refused")

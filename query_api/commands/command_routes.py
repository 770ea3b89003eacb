"""The commands: `POST /api/balance.addFunds` and `/api/balance.withdrawFunds`, each appending one event."""

from collections.abc import Callable
from decimal import Decimal

from flask import Blueprint, Response, request

from include.errors import SchemaError
from include.kafka.events import Event, FundsAdded, FundsWithdrawn
from include.read_models.balance import READ_MODEL
from include.settings import Settings
from query_api.commands.command_validation import MAX_BODY_BYTES, parse_command
from query_api.commands.event_producer import UNAVAILABLE, EventProducer
from query_api.http.json_text import dumps
from query_api.http.problems import ProblemError
from query_api.metrics.node_metrics import COMMANDS

RETRY_AFTER_S = 2
CENTS = Decimal("0.01")


def commands_blueprint(settings: Settings) -> Blueprint:
    """Return the commands as part of a Flask application."""
    blueprint = Blueprint("commands", __name__)
    producer = EventProducer(settings, READ_MODEL.source_topic)

    @blueprint.post("/api/balance.addFunds")
    def add_funds() -> Response:
        return _carry_out("addFunds", FundsAdded, producer)

    @blueprint.post("/api/balance.withdrawFunds")
    def withdraw_funds() -> Response:
        return _carry_out("withdrawFunds", FundsWithdrawn, producer)

    return blueprint


def _carry_out(command_name: str, event_type: Callable[..., Event], producer: EventProducer) -> Response:
    try:
        response = _append(event_type, producer)
    except ProblemError as problem:
        COMMANDS.labels(command_name, problem.slug).inc()
        raise
    COMMANDS.labels(command_name, "accepted").inc()
    return response


def _append(event_type: Callable[..., Event], producer: EventProducer) -> Response:
    command = parse_command(_body())
    given = {} if command.event_id is None else {"id": command.event_id}
    event = event_type(customerId=command.customer_id, amount=command.amount.quantize(CENTS), **given)
    try:
        at = producer.append(event)
    except UNAVAILABLE as error:
        raise ProblemError(
            503, "log-unavailable", str(error), retry_after_s=RETRY_AFTER_S, id=event.id
        ) from error
    except SchemaError as error:
        raise ProblemError(500, "schema-refused", str(error)) from error
    body = {"id": event.id, "position": {"topic": at.topic, "partition": at.partition, "offset": at.offset}}
    return Response(dumps(body), status=202, content_type="application/json")


def _body() -> bytes:
    """Return the request's body; raises ProblemError when it is larger than any command can be."""
    body: bytes = request.stream.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        detail = f"The body has more than {MAX_BODY_BYTES} bytes. Nothing was written."
        raise ProblemError(413, "body-too-large", detail)
    return body

"""The read models' commands: each appends one event to its read model's source topic."""

from collections.abc import Callable, Iterable

from flask import Blueprint, Response, request

from include.declarations.api import Command, ReadModelApi
from include.errors import SchemaError
from include.kafka.record_schema import RecordSchema
from include.settings import Settings
from query_api.http.commands.command_validation import MAX_BODY_BYTES, parse_command
from query_api.http.commands.event_producer import UNAVAILABLE, EventProducer
from query_api.http.json_text import dumps
from query_api.http.problems import ProblemError
from query_api.metrics.node_metrics import COMMANDS

RETRY_AFTER_S = 2


def commands_blueprint(settings: Settings, apis: Iterable[ReadModelApi]) -> Blueprint:
    """Return the commands as a Flask blueprint."""
    blueprint = Blueprint("commands", __name__)
    producers: dict[str, EventProducer] = {}
    for api in apis:
        topic = api.model.source_topic
        for command in api.commands:
            if topic not in producers:
                producers[topic] = EventProducer(settings, topic)
            view = _command_view(command, api.schemas[command.path], producers[topic])
            # Flask reserves the dot in endpoint names for blueprints.
            endpoint = command.path.replace(".", ":")
            blueprint.add_url_rule(command.path, endpoint, view, methods=["POST"])
    return blueprint


def _command_view(command: Command, schema: RecordSchema, producer: EventProducer) -> Callable[[], Response]:
    def run_command() -> Response:
        try:
            response = _append(command, schema, producer)
        except ProblemError as problem:
            COMMANDS.labels(command.name, problem.slug).inc()
            raise
        COMMANDS.labels(command.name, "accepted").inc()
        return response

    return run_command


def _append(command: Command, schema: RecordSchema, producer: EventProducer) -> Response:
    event = parse_command(_body(), command, schema)
    event_id = event.values["id"]
    try:
        at = producer.append(event)
    except UNAVAILABLE as error:
        raise ProblemError(
            503, "log-unavailable", str(error), retry_after_s=RETRY_AFTER_S, id=event_id
        ) from error
    except SchemaError as error:
        raise ProblemError(500, "schema-refused", str(error)) from error
    body = {"id": event_id, "position": {"topic": at.topic, "partition": at.partition, "offset": at.offset}}
    return Response(dumps(body), status=202, content_type="application/json")


def _body() -> bytes:
    """Return the request's body; raises ProblemError when it exceeds the limit for commands."""
    body: bytes = request.stream.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        detail = f"The body has more than {MAX_BODY_BYTES} bytes. Nothing was written."
        raise ProblemError(413, "body-too-large", detail)
    return body

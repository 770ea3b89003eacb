"""The read models' commands: each appends one event to the topic of its read model's events."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil

from flask import Blueprint, Response, request

from include.access.audit import AuditLog
from include.access.caller import Caller
from include.declarations.api import Command, ReadModelApi
from include.errors import RegistryUnavailableError, SchemaError
from include.kafka.events import GenericEvent, event_key
from include.nodes.record_requests import record_target
from include.settings import Settings
from query_api.errors import OutcomeUnknownError
from query_api.http.answers import CACHE_CONTROL, CONTENT_TYPE
from query_api.http.commands.command_body import complete_body
from query_api.http.commands.command_validation import parse_command
from query_api.http.commands.event_producer import UNAVAILABLE, EventProducer
from query_api.http.json_text import dumps
from query_api.http.limits.body_deadline import BodyDeadline
from query_api.http.limits.rate_limit import CALLER_KEY, client_of
from query_api.http.problems import ProblemError, busy_problem
from query_api.lookup.client_slots import ClientSlots, NoFreeSlotError
from query_api.metrics.node_metrics import COMMANDS

RETRY_AFTER_S = 2


@dataclass(frozen=True)
class Appended:
    """An event that a command has appended: its id, its topic, partition and offset, and the path of the record into which it is folded, if it has one."""

    event_id: object
    position: dict[str, object]
    location: str | None


@dataclass(frozen=True)
class CommandLimits:
    """What the commands of one worker process may take: threads, and time to send their bodies."""

    slots: ClientSlots
    body: BodyDeadline


def commands_blueprint(settings: Settings, apis: Iterable[ReadModelApi]) -> Blueprint:
    """Return the commands as a Flask blueprint."""
    blueprint = Blueprint("commands", __name__)
    producers: dict[str, EventProducer] = {}
    node = settings.node
    slots = ClientSlots(node.http_commands, node.max_client_share)
    limits = CommandLimits(slots, BodyDeadline(node.http_body_timeout_s))
    # Without authentication, nobody is known who could be named.
    audit = AuditLog(settings.home, node.name) if settings.auth.is_on else None
    for api in apis:
        topic = api.model.events_topic
        for command in api.commands:
            if topic not in producers:
                producers[topic] = EventProducer(settings, topic)
            view = _command_view(command, api, producers[topic], limits, audit)
            # Flask reserves the dot in endpoint names for blueprints.
            endpoint = command.path.replace(".", ":")
            blueprint.add_url_rule(command.path, endpoint, view, methods=["POST"])
    return blueprint


def _command_view(
    command: Command,
    api: ReadModelApi,
    producer: EventProducer,
    limits: CommandLimits,
    audit: AuditLog | None,
) -> Callable[[], Response]:
    schema = api.schemas[command.path]

    def run() -> Appended:
        try:
            with limits.slots.slot(client_of(request.environ)):
                event = parse_command(complete_body(request, limits.body), command, schema)
                return _append(event, api, producer)
        except NoFreeSlotError as error:
            raise busy_problem(
                error, "too-many-commands", RETRY_AFTER_S, outcome=" Nothing was written."
            ) from error

    def record(outcome: str, event_id: object, position: object = None) -> None:
        if audit is not None:
            caller: Caller = request.environ[CALLER_KEY]
            audit.record(
                "command",
                caller.name,
                credential=caller.credential or None,
                command=command.path,
                read_model=api.model.name,
                outcome=outcome,
                id=event_id,
                position=position,
                client=request.remote_addr,
            )

    def run_command() -> Response:
        try:
            appended = run()
        except ProblemError as problem:
            COMMANDS.labels(command.name, problem.slug).inc()
            record(problem.slug, problem.extra.get("id"))
            raise
        COMMANDS.labels(command.name, "accepted").inc()
        record("accepted", appended.event_id, appended.position)
        headers = dict([CONTENT_TYPE, CACHE_CONTROL])
        if appended.location is not None:
            headers["Location"] = appended.location
        body = {"id": appended.event_id, "position": appended.position}
        return Response(dumps(body), status=202, headers=headers)

    return run_command


def _append(event: GenericEvent, api: ReadModelApi, producer: EventProducer) -> Appended:
    event_id = event.values["id"]
    try:
        at = producer.append(event)
    except UNAVAILABLE as error:
        wait_s = error.retry_after_s if isinstance(error, RegistryUnavailableError) else 0.0
        raise ProblemError(
            503, "log-unavailable", str(error), retry_after_s=max(RETRY_AFTER_S, ceil(wait_s)), id=event_id
        ) from error
    except OutcomeUnknownError as error:
        raise _outcome_unknown(error, event, api) from error
    except SchemaError as error:
        raise ProblemError(500, "schema-refused", str(error)) from error
    position = {"topic": at.topic, "partition": at.partition, "offset": at.offset}
    # Events that are folded under another key have no record of their own key.
    location = _record_of(event, api) if api.model.rekeyed_from is None else None
    return Appended(event_id, position, location)


def _record_of(event: GenericEvent, api: ReadModelApi) -> str:
    """Return the path of the record into which an event is folded."""
    return record_target(api.model.name, event_key(event).decode())


def _outcome_unknown(error: OutcomeUnknownError, event: GenericEvent, api: ReadModelApi) -> ProblemError:
    """Return the problem of an event that may have been written. It has no Retry-After, which would invite a second one."""
    topic = api.model.events_topic
    advice = (
        "Once commands are accepted again, read the key's record: its eventCount is one higher than before the command if the "
        f"event was written and the key has no other writer. Or read the topic {topic} for the event with this id."
    )
    return ProblemError(
        504,
        "outcome-unknown",
        str(error),
        advice=advice,
        id=event.values["id"],
        topic=topic,
        record=_record_of(event, api),
    )

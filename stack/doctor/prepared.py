"""All checks of `./foldlake doctor`, with the settings and the stack.

Among them those of the servers that the settings name, instead of embedded ones: Kafka, schema registry, Airflow, Redis, a Spark master.
"""

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from include.airflow.client import AirflowApi
from include.errors import FoldlakeError, refusal_hint
from include.http_replies import without_credentials
from include.kafka.schema_registry import RegistryRequests
from include.machine import available_bytes
from include.nodes.certificates import CertificateError, known_certificates
from include.settings import Settings
from include.words import plural
from query_api.store.redis.server import RedisServer, Unanswered
from stack.doctor.finding import Finding, State
from stack.doctor.machine_checks import NeededPort, check_ports
from stack.doctor.unprepared import check_downloads, check_machine
from stack.lifecycle import COMPONENTS, all_processes
from stack.provisioning.layout import Layout
from stack.supervision.process import listeners, ports_of
from stack.supervision.supervisor import Supervisor

TIMEOUT_S = 5.0


def check_servers(settings: Settings) -> Iterator[Finding]:
    """Yield a finding for each server of the user's own."""
    if settings.kafka.bootstrap:
        yield check_kafka(settings)
    if settings.registry.external_url:
        yield check_schema_registry(settings)
    if settings.airflow.url:
        yield check_airflow(settings)
    if settings.redis.external_url:
        yield check_redis(settings)
    for variable, master in (
        ("FOLDLAKE_STREAM_MASTER", settings.stream.master),
        ("FOLDLAKE_LAKE_MASTER", settings.lake.master),
    ):
        if master.startswith("spark://"):
            yield check_spark_master(variable, master)


def check_kafka(settings: Settings) -> Finding:
    """Check that Kafka lists its brokers and has enough of them for the topics' replicas."""
    kafka = settings.kafka_connection
    action = "Check FOLDLAKE_KAFKA_BOOTSTRAP, and that the brokers' advertised listeners can be reached from this machine with FOLDLAKE_KAFKA_SECURITY_PROTOCOL."
    try:
        client = AdminClient({**kafka.client_settings, "log_level": 0})
        brokers = len(client.list_topics(timeout=TIMEOUT_S).brokers)
    except KafkaException as error:
        # Serves the client's error callback.
        client.poll(0)
        return Finding(
            "Kafka",
            State.PROBLEM,
            f"{kafka} does not reply: {error.args[0].str()}{refusal_hint(str(error))}",
            action=action,
        )
    replicas = settings.topics.replication_factor
    if brokers < replicas:
        lower = f"Set FOLDLAKE_REPLICATION_FACTOR to at most {brokers}, or add brokers: otherwise topics cannot be created."
        return Finding(
            "Kafka",
            State.PROBLEM,
            f"{plural(brokers, 'broker')} at {kafka}",
            f"{replicas} for the replicas",
            lower,
        )
    return Finding("Kafka", State.OK, f"{plural(brokers, 'broker')} at {kafka}")


def check_schema_registry(settings: Settings) -> Finding:
    """Check that the schema registry lists its subjects to this caller."""
    check, url = "schema registry", settings.registry.url
    try:
        requests = RegistryRequests(settings.registry.connection, TIMEOUT_S, patience_s=0.0)
        subjects = requests.send(lambda client: client.get_subjects())
        if not isinstance(subjects, list):
            raise requests.unusable_reply(subjects)
    except FoldlakeError as error:
        return Finding(check, State.PROBLEM, str(error), action="Check FOLDLAKE_SCHEMA_REGISTRY_URL.")
    return Finding(check, State.OK, f"{len(subjects)} subjects at {url}")


def check_airflow(settings: Settings) -> Finding:
    """Check that Airflow's API server and its components are healthy."""
    url = without_credentials(settings.airflow.base_url)
    missing = {"metadatabase", "scheduler", "triggerer", "dag_processor"} - AirflowApi(
        settings.airflow.base_url
    ).health()
    if missing:
        found = f"{', '.join(sorted(missing))} not healthy at {url}"
        action = "Check FOLDLAKE_AIRFLOW_URL, and that these components of Airflow run."
        return Finding("Airflow", State.PROBLEM, found, action=action)
    return Finding("Airflow", State.OK, f"healthy at {url}")


def check_redis(settings: Settings) -> Finding:
    """Check that Redis replies to this user."""
    try:
        server = RedisServer(settings.redis)
        server.call(lambda client: client.ping())
    except (FoldlakeError, Unanswered) as error:
        found = f"{without_credentials(settings.redis.url.get_secret_value())} does not reply: {error}"
        return Finding(
            "Redis", State.PROBLEM, found, action="Check FOLDLAKE_REDIS_URL, and that the server runs."
        )
    return Finding("Redis", State.OK, f"{server.label} replies")


def check_spark_master(variable: str, master: str) -> Finding:
    """Check that a Spark master accepts connections; of several masters, one is enough."""
    check = "Spark master"
    for address in master.removeprefix("spark://").split(","):
        parts = urlsplit(f"spark://{address}")
        try:
            with socket.create_connection((parts.hostname or "", parts.port or 7077), timeout=TIMEOUT_S):
                return Finding(check, State.OK, f"spark://{address} accepts connections")
        except (OSError, ValueError):
            continue
    return Finding(
        check,
        State.PROBLEM,
        f"{master} accepts no connections",
        action=f"Check {variable}, and that the master runs.",
    )


def findings(settings: Settings) -> Iterator[Finding]:
    """Yield the findings of all checks."""
    running = {name for name, state in Supervisor(settings).states().items() if state.is_running}
    layout = Layout(settings.tools)
    own_servers = {variable for variable in COMPONENTS.values() if settings.by_variable().get(variable)}
    yield from check_machine(
        layout,
        settings.home,
        has_whole_stack=not own_servers,
        available_bytes=None if running else available_bytes(),
    )
    yield from check_stack_ports(settings, running)
    yield from check_downloads(layout, settings.maven_mirror)
    yield from check_servers(settings)
    yield from check_certificates(settings)


def check_certificates(settings: Settings) -> Iterator[Finding]:
    """Check that no certificate of nodes, jobs or the listener for callers ends soon."""
    if not settings.has_peer_listener and settings.tls.cert_file is None:
        return
    try:
        found = known_certificates(settings)
    except CertificateError as error:
        yield Finding("certificates", State.PROBLEM, str(error), action="Run ./foldlake certificates create.")
        return
    ending = [one for one in found if one.warning]
    for one in ending:
        state = State.WARNING if one.expires_in_s > 0 else State.PROBLEM
        yield Finding(f"certificate {one.name}", state, f"{one.not_after:%Y-%m-%d}", action=str(one.warning))
    if found and not ending:
        first = min(found, key=lambda one: one.not_after)
        yield Finding("certificates", State.OK, f"the first one ends on {first.not_after:%Y-%m-%d}")


def check_stack_ports(settings: Settings, running: set[str]) -> Iterator[Finding]:
    """Check the ports of the stack's processes; those of running processes are in use by themselves."""
    needed = [
        NeededPort(number, variable, process.name)
        for process in all_processes(settings)
        if process.name not in running
        for variable, number in ports_of(process).items()
    ]
    holders = listeners()
    if needed or not running:
        yield from check_ports(needed, lambda port: holders.get(port, "another process"))
    else:
        yield Finding("ports", State.OK, "in use by the running stack")

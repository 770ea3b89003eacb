"""The embedded Kafka broker: one KRaft node, both broker and controller."""

import shutil
import socket
import subprocess
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from include.errors import FoldlakeError
from include.files import write_atomically
from include.settings import KafkaSettings, Settings, TopicSettings
from stack.supervision.process import Process
from stack.tools import Tools

START_ORDER = 10
FORMAT_TIMEOUT_S = 60
READY_TIMEOUT_S = 1.5

LOG4J = """\
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %-5p %c{1} %m%n
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
logger.kafka.name = kafka
logger.kafka.level = INFO
logger.apache.name = org.apache.kafka
logger.apache.level = INFO
# Kafka logs all settings several times at every start.
logger.config.name = org.apache.kafka.common.config.AbstractConfig
logger.config.level = WARN
"""


class KafkaSetupError(FoldlakeError):
    """The broker's storage could not be prepared."""


def data_directory(home: Path) -> Path:
    """Return the directory of the broker's logs."""
    return home / "kafka" / "data"


def prepare(settings: Settings) -> None:
    """Write the broker's configuration, and format its storage at the first start.

    Raises:
        KafkaSetupError: Kafka's storage tool failed.
    """
    home = settings.home / "kafka"
    write_atomically(home / "log4j2.properties", LOG4J)
    data = data_directory(settings.home)
    write_atomically(_properties_path(settings.home), properties(settings.kafka, settings.topics, data))
    if not data.exists():
        _format(settings, home)


def properties(kafka: KafkaSettings, topics: TopicSettings, data: Path) -> str:
    """Return the content of server.properties."""
    listener = f"PLAINTEXT://127.0.0.1:{kafka.port}"
    controller = f"127.0.0.1:{kafka.controller_port}"
    lines = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{listener},CONTROLLER://{controller}",
        "advertised.listeners": listener,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": data,
        # An automatically created topic would have the wrong number of partitions.
        "auto.create.topics.enable": "false",
        "num.partitions": topics.partitions,
        # The log is the source of truth: it is kept forever unless a topic's own configuration limits it.
        "log.retention.ms": -1,
        "log.retention.bytes": -1,
        # How long a group's first member waits for others. The default of 3 s would only delay every start.
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        # A single broker cannot replicate.
        "default.replication.factor": 1,
        "min.insync.replicas": 1,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        # The default of 50 means 50 directories and their files to open at every start.
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.num.partitions": 4,
        "num.network.threads": 2,
        "num.io.threads": 4,
        # Allocated from the heap; the default is 128 MB. At 24 bytes per key, this compacts a million keys per pass.
        "log.cleaner.dedupe.buffer.size": 32 * 1024 * 1024,
    }
    return "".join(f"{name}={value}\n" for name, value in lines.items())


def processes(settings: Settings) -> list[Process]:
    """Return the broker's process."""
    tools = Tools(settings.tools)
    home = settings.home / "kafka"
    command = (
        str(tools.java),
        "-Xms256m",
        f"-Xmx{settings.kafka.heap_mb}m",
        "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=20",
        # A broker that is out of memory works only partly; a dead one is restarted.
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={home / 'log4j2.properties'}",
        "-cp",
        _class_path(tools),
        "kafka.Kafka",
        str(_properties_path(settings.home)),
    )
    return [
        Process(
            name="kafka",
            command=command,
            start_order=START_ORDER,
            is_ready=lambda: _answers(settings.kafka.port),
            port=settings.kafka.port,
            port_setting="FOLDLAKE_KAFKA_PORT",
            also_listens={"FOLDLAKE_KAFKA_CONTROLLER_PORT": settings.kafka.controller_port},
            stop_timeout_s=20,
            reads_settings=False,
        )
    ]


def _properties_path(home: Path) -> Path:
    return home / "kafka" / "server.properties"


def _class_path(tools: Tools) -> str:
    jars = tools.jars("kafka")
    # A wildcard instead of every jar keeps the command line readable in process lists.
    return f"{jars[0].parent}/*"


def _format(settings: Settings, home: Path) -> None:
    """Format a temporary directory, then rename it: a directory with the final name is always complete."""
    fresh = home / "formatting"
    shutil.rmtree(fresh, ignore_errors=True)
    configuration = home / "formatting.properties"
    configuration.write_text(properties(settings.kafka, settings.topics, fresh), encoding="utf-8")
    tools = Tools(settings.tools)
    cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    done = subprocess.run(
        [
            str(tools.java),
            "-XX:TieredStopAtLevel=1",
            f"-Dlog4j2.configurationFile={home / 'log4j2.properties'}",
            "-cp",
            _class_path(tools),
            "kafka.tools.StorageTool",
            "format",
            # With `=`, because an id may start with a dash.
            f"--cluster-id={cluster_id}",
            "--config",
            str(configuration),
        ],
        capture_output=True,
        text=True,
        timeout=FORMAT_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        message = f"Cannot format Kafka's storage in {home}:\n{(done.stdout + done.stderr)[-2000:]}"
        raise KafkaSetupError(message)
    fresh.rename(data_directory(settings.home))
    configuration.unlink()


def _answers(port: int) -> bool:
    """Whether the broker lists its topics. The port is tried first, because a Kafka client logs failed connections."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=READY_TIMEOUT_S).close()
        client = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
        return bool(client.list_topics(timeout=READY_TIMEOUT_S).brokers)
    except (OSError, KafkaException):
        return False

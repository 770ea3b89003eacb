"""The embedded Kafka broker: one KRaft node that is broker and controller."""

import shutil
import socket
import subprocess
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from include.errors import FoldlakeError
from include.settings import Settings
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
# Every start prints all settings several times over.
logger.config.name = org.apache.kafka.common.config.AbstractConfig
logger.config.level = WARN
"""


class KafkaSetupError(FoldlakeError):
    """The broker's storage could not be prepared."""


def data_directory(settings: Settings) -> Path:
    """Directory of the broker's logs."""
    return settings.home / "kafka" / "data"


def prepare(settings: Settings) -> None:
    """Write the broker's configuration, and format its storage the first time.

    Raises:
        KafkaSetupError: Kafka's own tool could not format the storage.
    """
    home = settings.home / "kafka"
    home.mkdir(parents=True, exist_ok=True)
    (home / "log4j2.properties").write_text(LOG4J, encoding="utf-8")
    data = data_directory(settings)
    _properties_path(settings).write_text(properties(settings, data), encoding="utf-8")
    if not data.exists():
        _format(settings, home)


def properties(settings: Settings, data: Path) -> str:
    """Return server.properties."""
    listener = f"PLAINTEXT://127.0.0.1:{settings.kafka.port}"
    controller = f"127.0.0.1:{settings.kafka.controller_port}"
    lines = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{listener},CONTROLLER://{controller}",
        "advertised.listeners": listener,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": data,
        # A topic that nobody declared has the wrong number of partitions for everybody.
        "auto.create.topics.enable": "false",
        "num.partitions": settings.topics.partitions,
        # The log is the truth: it is kept unless a topic says otherwise.
        "log.retention.ms": -1,
        "log.retention.bytes": -1,
        # A consumer group's first member waits this long for others: 3 s at every start, for nothing here.
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        # One broker holds the only replica of everything.
        "default.replication.factor": 1,
        "min.insync.replicas": 1,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        # 50 each by default: as many directories and files to open at every start.
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.num.partitions": 4,
        "num.network.threads": 2,
        "num.io.threads": 4,
        # 128 MB by default, taken from the heap at the first compaction. 24 bytes a key: a million keys a pass.
        "log.cleaner.dedupe.buffer.size": 32 * 1024 * 1024,
    }
    return "".join(f"{name}={value}\n" for name, value in lines.items())


def processes(settings: Settings) -> list[Process]:
    """Return the broker's process."""
    tools = Tools(settings)
    home = settings.home / "kafka"
    command = (
        str(tools.java),
        "-Xms256m",
        f"-Xmx{settings.kafka.heap_mb}m",
        "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=20",
        # A broker without memory half works; one that is dead is started again.
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={home / 'log4j2.properties'}",
        "-cp",
        _class_path(tools),
        "kafka.Kafka",
        str(_properties_path(settings)),
    )
    return [
        Process(
            name="kafka",
            command=command,
            start_order=START_ORDER,
            is_ready=lambda: _answers(settings),
            port=settings.kafka.port,
            port_setting="FOLDLAKE_KAFKA_PORT",
            also_listens={"FOLDLAKE_KAFKA_CONTROLLER_PORT": settings.kafka.controller_port},
            stop_timeout_s=20,
            reads_settings=False,
        )
    ]


def _properties_path(settings: Settings) -> Path:
    return settings.home / "kafka" / "server.properties"


def _class_path(tools: Tools) -> str:
    jars = tools.jars("kafka")
    # A directory of jars rather than each: command lines stay readable in a process list.
    return f"{jars[0].parent}/*"


def _format(settings: Settings, home: Path) -> None:
    """Format into a directory of another name, then rename: what bears the right name is whole."""
    fresh = home / "formatting"
    shutil.rmtree(fresh, ignore_errors=True)
    configuration = home / "formatting.properties"
    configuration.write_text(properties(settings, fresh), encoding="utf-8")
    tools = Tools(settings)
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
            # An option, as one of the id's 64 characters is a dash.
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
        message = f"Kafka's storage in {home} could not be formatted:\n{(done.stdout + done.stderr)[-2000:]}"
        raise KafkaSetupError(message)
    fresh.rename(data_directory(settings))
    configuration.unlink()


def _answers(settings: Settings) -> bool:
    """Whether the broker lists its topics; asked only where something listens, as a client would log its failures."""
    try:
        socket.create_connection(("127.0.0.1", settings.kafka.port), timeout=READY_TIMEOUT_S).close()
        client = AdminClient({"bootstrap.servers": f"127.0.0.1:{settings.kafka.port}", "log_level": 0})
        return bool(client.list_topics(timeout=READY_TIMEOUT_S).brokers)
    except (OSError, KafkaException):
        return False

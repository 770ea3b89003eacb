"""The embedded schema registry: Apicurio Registry, through its Confluent-compatible API."""

from pathlib import Path

import httpx

from include.settings import Settings
from stack.readiness import loopback_client
from stack.supervision.process import Process
from stack.tools import Tools

START_ORDER = 10
COMPATIBILITY = "BACKWARD"


def prepare(settings: Settings) -> None:
    """Create the directory of the registry's database."""
    (settings.home / "registry").mkdir(parents=True, exist_ok=True)


def processes(settings: Settings) -> list[Process]:
    """Return the registry's process."""
    tools = Tools(settings.tools)
    return [
        Process(
            name="registry",
            command=(
                str(tools.java25),
                # The serial collector and the first compiler tier halve the start-up time, and suffice for a few simple requests.
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                # Java's own initial size is a 64th of the machine's memory: all of these 192 MB, for 30 MB of objects.
                "-Xms32m",
                "-Xmx192m",
                "-XX:+ExitOnOutOfMemoryError",
                "-jar",
                str(tools.registry_home / "quarkus-run.jar"),
            ),
            start_order=START_ORDER,
            is_ready=lambda: _is_ready(settings.registry.port),
            port=settings.registry.port,
            port_setting="FOLDLAKE_REGISTRY_PORT",
            environment=environment(settings.home, settings.registry.port),
            reads_settings=False,
        )
    ]


def environment(home: Path, port: int) -> dict[str, str]:
    """Return Apicurio's configuration as environment variables."""
    database = home / "registry" / "db"
    return {
        "QUARKUS_HTTP_HOST": "127.0.0.1",
        "QUARKUS_HTTP_PORT": str(port),
        # By default the management interface listens on all interfaces, on a fixed port. It is unused here, so any free port will do.
        "QUARKUS_MANAGEMENT_HOST": "127.0.0.1",
        "QUARKUS_MANAGEMENT_PORT": "0",
        "APICURIO_STORAGE_KIND": "sql",
        "APICURIO_STORAGE_SQL_KIND": "h2",
        # Without WRITE_DELAY=0, a killed process loses schemas that it has acknowledged.
        "APICURIO_DATASOURCE_URL": f"jdbc:h2:file:{database};WRITE_DELAY=0;DB_CLOSE_ON_EXIT=FALSE",
        "APICURIO_DATASOURCE_JDBC_INITIAL_SIZE": "2",
        "APICURIO_DATASOURCE_JDBC_MIN_SIZE": "2",
        "APICURIO_DATASOURCE_JDBC_MAX_SIZE": "10",
        # Apicurio checks no compatibility by default.
        "APICURIO_RULES_GLOBAL_COMPATIBILITY": COMPATIBILITY,
        "QUARKUS_OTEL_SDK_DISABLED": "true",
        "QUARKUS_HTTP_ACCESS_LOG_ENABLED": "false",
    }


def _is_ready(port: int) -> bool:
    """Whether the registry answers and rejects incompatible schemas; sets that rule if it is missing."""
    config = f"http://127.0.0.1:{port}/apis/ccompat/v7/config"
    try:
        current = loopback_client().get(config).raise_for_status().json()
        if current.get("compatibilityLevel") == COMPATIBILITY:
            return True
        loopback_client().put(config, json={"compatibility": COMPATIBILITY})
    except (httpx.HTTPError, ValueError):
        pass
    return False

"""The embedded schema registry: Apicurio Registry, through its Confluent-compatible API."""

import json
import urllib.error
import urllib.request

from include.settings import Settings
from stack.supervision.process import Process
from stack.tools import Tools

START_ORDER = 10
READY_TIMEOUT_S = 1.5
COMPATIBILITY = "BACKWARD"


def prepare(settings: Settings) -> None:
    """Make the directory of the registry's database."""
    (settings.home / "registry").mkdir(parents=True, exist_ok=True)


def processes(settings: Settings) -> list[Process]:
    """Return the registry's process."""
    tools = Tools(settings)
    return [
        Process(
            name="registry",
            command=(
                str(tools.java21),
                # Few requests, all alike: the small collector and the quick compiler start it in half the time.
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-Xmx192m",
                "-XX:+ExitOnOutOfMemoryError",
                "-jar",
                str(tools.registry_home / "quarkus-run.jar"),
            ),
            start_order=START_ORDER,
            is_ready=lambda: _is_ready(settings),
            port=settings.registry.port,
            port_setting="FOLDLAKE_REGISTRY_PORT",
            environment=environment(settings),
            reads_settings=False,
        )
    ]


def environment(settings: Settings) -> dict[str, str]:
    """Return Apicurio's configuration, as environment variables."""
    database = settings.home / "registry" / "db"
    return {
        "QUARKUS_HTTP_HOST": "127.0.0.1",
        "QUARKUS_HTTP_PORT": str(settings.registry.port),
        # Opened on all interfaces and on a fixed port unless told otherwise. Nobody asks there: any free port does.
        "QUARKUS_MANAGEMENT_HOST": "127.0.0.1",
        "QUARKUS_MANAGEMENT_PORT": "0",
        "APICURIO_STORAGE_KIND": "sql",
        "APICURIO_STORAGE_SQL_KIND": "h2",
        # Without WRITE_DELAY=0, a schema that was acknowledged is lost when the process is killed.
        "APICURIO_DATASOURCE_URL": f"jdbc:h2:file:{database};WRITE_DELAY=0;DB_CLOSE_ON_EXIT=FALSE",
        "APICURIO_DATASOURCE_JDBC_INITIAL_SIZE": "2",
        "APICURIO_DATASOURCE_JDBC_MIN_SIZE": "2",
        "APICURIO_DATASOURCE_JDBC_MAX_SIZE": "10",
        # Its own default is to check nothing.
        "APICURIO_RULES_GLOBAL_COMPATIBILITY": COMPATIBILITY,
        "QUARKUS_OTEL_SDK_DISABLED": "true",
        "QUARKUS_HTTP_ACCESS_LOG_ENABLED": "false",
    }


def _is_ready(settings: Settings) -> bool:
    """Whether the registry answers and refuses incompatible schemas, which is set where it is not."""
    config = f"http://127.0.0.1:{settings.registry.port}/apis/ccompat/v7/config"
    try:
        if _call(config).get("compatibilityLevel") == COMPATIBILITY:
            return True
        _call(config, {"compatibility": COMPATIBILITY})
    except (OSError, urllib.error.URLError, ValueError):
        pass
    return False


def _call(url: str, body: dict[str, str] | None = None) -> dict[str, object]:
    request = urllib.request.Request(  # noqa: S310 - the address is our own
        url,
        data=None if body is None else json.dumps(body).encode(),
        method="GET" if body is None else "PUT",
        headers={"Content-Type": "application/json"},
    )
    with _DIRECT.open(request, timeout=READY_TIMEOUT_S) as answer:
        return dict(json.load(answer))


# Never through the user's proxy: the registry is on this machine.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))

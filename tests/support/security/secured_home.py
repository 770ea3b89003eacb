"""A home whose processes use the secured broker, and a registry behind TLS and a password."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from include.settings import Settings
from stack.stack_guard import guarded
from tests.support.security.certificates import Authority
from tests.support.security.secured_broker import SecuredBroker
from tests.support.security.secured_registry import secured_registry
from tests.support.temporary_stack import SHORT_COMMITS, delete_topics, temporary_home, temporary_settings

# Each has a part that no escape changes, by which it is searched, and characters that files and URLs escape.
KAFKA_SECRET, REGISTRY_SECRET = "Zw3-kafka-word", "Zw3-registry-word"
KAFKA_PASSWORD, REGISTRY_PASSWORD = f'"\\{KAFKA_SECRET} ${{=}}', f"/{REGISTRY_SECRET}:@ü"
# These files have secrets, and only their owner can read them.
PRIVATE = {"run/secrets.json", "run/kafka.properties", "stream/configuration.json"}
USER = "foldlake"


@contextmanager
def secured_home(
    servers: Settings,
    broker: SecuredBroker,
    authority: Authority,
    keep_home: Callable[[], bool],
    **overrides: object,
) -> Iterator[Settings]:
    """Yield the settings of a new home; no process runs yet. All topics are deleted before and after the block.

    servers: settings of the stack whose schema registry is behind TLS here. overrides: further settings by variable.
    """
    certificate = authority.issue("registry")
    with (
        temporary_home(keep_home) as home,
        secured_registry(servers.registry.port, certificate, USER, REGISTRY_PASSWORD) as registry_url,
    ):
        broker.add_user(USER, KAFKA_PASSWORD)
        values: dict[str, object] = {
            "kafka_bootstrap": f"127.0.0.1:{broker.port}",
            "kafka_security_protocol": "SASL_SSL",
            "kafka_sasl_mechanism": "SCRAM-SHA-512",
            "kafka_sasl_username": USER,
            "kafka_sasl_password": KAFKA_PASSWORD,
            "kafka_ssl_ca_file": authority.ca_file,
            "schema_registry_url": f"{registry_url}/apis/ccompat/v7",
            "schema_registry_username": USER,
            "schema_registry_password": REGISTRY_PASSWORD,
            "schema_registry_ca_file": authority.ca_file,
            "stream_spare_queries": 0,
            **SHORT_COMMITS,
            **overrides,
        }
        settings = temporary_settings(home, **values)
        delete_topics(settings)
        with guarded(settings):
            yield settings
        delete_topics(settings)

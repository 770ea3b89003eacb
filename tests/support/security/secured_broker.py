"""A real broker that authenticates its clients, with SASL_SSL or with client certificates, and checks their rights with access control lists."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from include.process import die_with_parent
from include.settings import Settings
from stack.components import kafka
from tests.support.security.certificates import HOST, Authority
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until

DEADLINE_S = 60.0
ITERATIONS = 4096
MODULES = "org.apache.kafka.common.security"
LISTENER = "listener.name.clients"
Resource = tuple[ResourceType, str, ResourcePatternType, tuple[str, ...]]
# The rights that docs/how-to/own-servers.md lists, which include Describe, and no others: resource, name, whether that is a prefix, operations.
RIGHTS: tuple[Resource, ...] = (
    (
        ResourceType.TOPIC,
        "*",
        ResourcePatternType.LITERAL,
        ("READ", "WRITE", "DESCRIBE_CONFIGS", "CREATE", "DELETE"),
    ),
    (ResourceType.GROUP, "foldlake-", ResourcePatternType.PREFIXED, ("READ",)),
    (ResourceType.TRANSACTIONAL_ID, "foldlake-", ResourcePatternType.PREFIXED, ("WRITE",)),
)


class SecuredBroker:
    """The broker. port: for SASL_SSL. certificate_port: for SSL with client certificates. admin: a client that may do everything."""

    def __init__(
        self, settings: Settings, authority: Authority, key_file: Path, plain: tuple[str, str]
    ) -> None:
        """Start the broker.

        settings: of an embedded broker, whose folder and controller's port it has. key_file: the public key of tokens, as a JSON Web Key
        Set. plain: the user's name and password for the mechanism PLAIN.
        """
        self._home = settings.home
        self.port, self.certificate_port, internal = free_ports(3)
        self.admin = AdminClient({"bootstrap.servers": f"{HOST}:{internal}", "log_level": 0})
        kafka.prepare(settings)
        path = settings.home / "kafka" / "server.properties"
        listeners = {
            "CLIENTS": self.port,
            "MUTUAL": self.certificate_port,
            "INTERNAL": internal,
            "CONTROLLER": settings.kafka.controller_port,
        }
        lines = _listeners(listeners) | _encryption(authority) | _mechanisms(key_file, plain)
        # The last value of a property counts.
        path.write_text(path.read_text() + "".join(f"{name}={value}\n" for name, value in lines.items()))
        (definition,) = kafka.processes(settings)
        java, *arguments = definition.command
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={key_file.as_uri()}"
        files = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={key_file}"
        (settings.home / "logs").mkdir(parents=True, exist_ok=True)
        with (settings.home / "logs" / "kafka.log").open("ab") as log:
            self._process = subprocess.Popen(
                [java, allowed, files, *arguments],
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - only a system call
            )
        wait_until(self._answers, "the broker answers", DEADLINE_S)

    def _answers(self) -> bool:
        try:
            return bool(self.admin.list_topics(timeout=2).brokers)
        except KafkaException:
            return False

    def add_user(self, name: str, password: str) -> None:
        """Create a user for both SCRAM mechanisms."""
        changes = [
            UserScramCredentialUpsertion(name, ScramCredentialInfo(mechanism, ITERATIONS), password.encode())
            for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        ]
        for change in changes:
            for future in self.admin.alter_user_scram_credentials([change]).values():
                future.result(DEADLINE_S)

    def grant(self, name: str, *, without: tuple[ResourceType, str] | None = None) -> None:
        """Grant a user the rights that Foldlake needs, except for an operation on a resource."""
        bindings = [
            AclBinding(
                kind, of, pattern, f"User:{name}", "*", AclOperation[operation], AclPermissionType.ALLOW
            )
            for kind, of, pattern, operations in RIGHTS
            for operation in operations
            if (kind, operation) != without
        ]
        for future in self.admin.create_acls(bindings).values():
            future.result(DEADLINE_S)

    def stop(self) -> None:
        """Stop the broker."""
        self._process.terminate()
        self._process.wait(DEADLINE_S)


def _listeners(ports: dict[str, int]) -> dict[str, object]:
    """The broker reaches itself, and its controller, without authentication."""
    all_of_them = {name: f"{name}://{HOST}:{port}" for name, port in ports.items()}
    return {
        "listeners": ",".join(all_of_them.values()),
        "advertised.listeners": ",".join(text for name, text in all_of_them.items() if name != "CONTROLLER"),
        "inter.broker.listener.name": "INTERNAL",
        "listener.security.protocol.map": (
            "CLIENTS:SASL_SSL,MUTUAL:SSL,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }


def _encryption(authority: Authority) -> dict[str, object]:
    certificate, key = authority.issue("broker")
    store = certificate.with_name("broker-store.pem")
    store.write_bytes(key.read_bytes() + certificate.read_bytes())
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": store,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.ca_file,
        "listener.name.mutual.ssl.client.auth": "required",
    }


def _mechanisms(key_file: Path, plain: tuple[str, str]) -> dict[str, object]:
    scram = f"{MODULES}.scram.ScramLoginModule required;"
    tokens = f"{LISTENER}.oauthbearer.sasl"
    return {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{LISTENER}.plain.sasl.jaas.config": (
            f'{MODULES}.plain.PlainLoginModule required user_{plain[0]}="{plain[1]}";'
        ),
        f"{LISTENER}.scram-sha-256.sasl.jaas.config": scram,
        f"{LISTENER}.scram-sha-512.sasl.jaas.config": scram,
        f"{tokens}.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        f"{tokens}.server.callback.handler.class": (
            f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        f"{tokens}.oauthbearer.jwks.endpoint.url": key_file.as_uri(),
    }


@contextmanager
def secured_broker(
    settings: Settings, authority: Authority, key_file: Path, plain: tuple[str, str]
) -> Iterator[SecuredBroker]:
    """Run a broker for the duration of the block."""
    broker = SecuredBroker(settings, authority, key_file, plain)
    try:
        yield broker
    finally:
        broker.stop()

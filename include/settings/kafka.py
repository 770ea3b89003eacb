"""Kafka's settings, and how clients connect to the brokers: with which protocol, identity and certificates."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from include.errors import note_refusal
from include.settings.base import LOOPBACK, NO_SECRET, SettingsGroup, existing_file

PREFIX = "FOLDLAKE_KAFKA_"


class SecurityProtocol(StrEnum):
    """How clients reach the brokers: whether encrypted, and whether they authenticate with SASL."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection uses TLS."""
        return self in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}

    @property
    def has_sasl(self) -> bool:
        """Whether clients authenticate with SASL."""
        return self in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}


class SaslMechanism(StrEnum):
    """How clients authenticate. NONE: not with SASL. OAUTHBEARER: with a token by OpenID Connect's client credentials."""

    NONE = ""
    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"


class KafkaSettings(SettingsGroup):
    """Kafka. bootstrap: servers of your own; empty: the embedded broker, which has the ports and the heap given here.

    The other settings are those of your own servers. ssl_ca_file, ssl_cert_file, ssl_key_file: in PEM format; without the first,
    the operating system's certificates are trusted. oauth_*: of the client-credentials method.
    """

    bootstrap: str = ""
    port: int = 9092
    controller_port: int = 9093
    heap_mb: int = Field(default=512, ge=128)
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    sasl_mechanism: SaslMechanism = SaslMechanism.NONE
    sasl_username: str = ""
    sasl_password: SecretStr = NO_SECRET
    ssl_ca_file: Path | None = None
    ssl_cert_file: Path | None = None
    ssl_key_file: Path | None = None
    oauth_token_url: str = ""
    oauth_client_id: str = ""
    oauth_client_secret: SecretStr = NO_SECRET
    oauth_scope: str = ""

    @property
    def bootstrap_servers(self) -> str:
        """Kafka's `bootstrap.servers`."""
        return self.bootstrap or f"{LOOPBACK}:{self.port}"

    @field_validator("ssl_ca_file", "ssl_cert_file", "ssl_key_file", mode="after")
    @classmethod
    def _existing(cls, value: Path | None) -> Path | None:
        return existing_file(value)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if contradictions := list(_contradictions(self)):
            raise ValueError(" ".join(contradictions))
        return self


def _contradictions(kafka: KafkaSettings) -> Iterator[str]:
    """Yield a sentence for each setting that others contradict, or that is missing beside them."""
    protocol, mechanism = kafka.security_protocol, kafka.sasl_mechanism
    if protocol is not SecurityProtocol.PLAINTEXT and not kafka.bootstrap:
        yield (
            f"{PREFIX}SECURITY_PROTOCOL is {protocol}, but the embedded broker has no security: set {PREFIX}BOOTSTRAP to servers of your "
            f"own, or leave {PREFIX}SECURITY_PROTOCOL empty."
        )
    if protocol.has_sasl and not mechanism:
        yield f"{PREFIX}SECURITY_PROTOCOL is {protocol}: set {PREFIX}SASL_MECHANISM as well."
    if mechanism and not protocol.has_sasl:
        yield f"{PREFIX}SASL_MECHANISM is set: set {PREFIX}SECURITY_PROTOCOL to SASL_SSL, or to SASL_PLAINTEXT in a trusted network."
    login = {"SASL_USERNAME": kafka.sasl_username, "SASL_PASSWORD": kafka.sasl_password}
    token = {
        "OAUTH_TOKEN_URL": kafka.oauth_token_url,
        "OAUTH_CLIENT_ID": kafka.oauth_client_id,
        "OAUTH_CLIENT_SECRET": kafka.oauth_client_secret,
    }
    is_token = mechanism is SaslMechanism.OAUTHBEARER
    needed, unused = (token, login) if is_token else (login if mechanism else {}, token)
    for name in (name for name, value in needed.items() if not value):
        yield f"{PREFIX}SASL_MECHANISM is {mechanism}: set {PREFIX}{name} as well."
    for name in (name for name, value in unused.items() if value):
        yield f"{PREFIX}{name} is set, but {PREFIX}SASL_MECHANISM does not use it: remove one of them."
    if not mechanism and any(login.values()):
        yield f"{PREFIX}SASL_USERNAME or {PREFIX}SASL_PASSWORD is set: set {PREFIX}SASL_MECHANISM as well."
    if not protocol.is_encrypted and (kafka.ssl_ca_file or kafka.ssl_cert_file or kafka.ssl_key_file):
        yield f"A file {PREFIX}SSL_*_FILE is set: set {PREFIX}SECURITY_PROTOCOL to SSL or SASL_SSL."
    if (kafka.ssl_cert_file is None) != (kafka.ssl_key_file is None):
        yield f"{PREFIX}SSL_CERT_FILE and {PREFIX}SSL_KEY_FILE belong together: set both, or neither."


# Of brokers without security.
EMBEDDED = KafkaSettings()


def kafka_secrets_path(home: Path) -> Path:
    """Return the file with the secrets of Java's clients."""
    return home / "run" / "kafka.properties"


@dataclass(frozen=True)
class KafkaConnection:
    """The brokers, and how clients connect to them. Its text is that of the servers, without a secret.

    secrets_file: where the secrets of Java's clients are written (include/spark/kafka_clients.py).
    """

    servers: str
    security: KafkaSettings = EMBEDDED
    secrets_file: Path | None = None

    def __str__(self) -> str:
        """Return the servers."""
        return self.servers

    @property
    def client_settings(self) -> dict[str, Any]:
        """The settings of a client of librdkafka, such as confluent_kafka's, with the secrets."""
        kafka = self.security
        if kafka.security_protocol is SecurityProtocol.PLAINTEXT:
            return {"bootstrap.servers": self.servers}
        found = {
            "bootstrap.servers": self.servers,
            "security.protocol": kafka.security_protocol.value,
            "sasl.mechanism": kafka.sasl_mechanism.value,
            "sasl.username": kafka.sasl_username,
            "sasl.password": kafka.sasl_password.get_secret_value(),
            "ssl.ca.location": str(kafka.ssl_ca_file or ""),
            "ssl.certificate.location": str(kafka.ssl_cert_file or ""),
            "ssl.key.location": str(kafka.ssl_key_file or ""),
        }
        if kafka.sasl_mechanism is SaslMechanism.OAUTHBEARER:
            found |= {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": kafka.oauth_token_url,
                "sasl.oauthbearer.client.id": kafka.oauth_client_id,
                "sasl.oauthbearer.client.secret": kafka.oauth_client_secret.get_secret_value(),
                "sasl.oauthbearer.scope": kafka.oauth_scope,
            }
        return {name: value for name, value in found.items() if value} | {"error_cb": note_refusal}

"""Each setting of Kafka's security reaches the clients of librdkafka and of Java; contradictions are errors; no secret is shown."""

import re
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from include.errors import KafkaUnavailableError, SettingsError, note_refusal
from include.settings import SECRETS, KafkaConnection, Settings
from include.spark.kafka_clients import java_settings, spark_options

PASSWORD = 'a "quoted\\ pass${word}, ü'  # noqa: S105 - of no server
CLIENT_SECRET = "client/secret"  # noqa: S105 - of no server
SCRAM = {
    "kafka_bootstrap": "kafka:9093",
    "kafka_security_protocol": "SASL_SSL",
    "kafka_sasl_mechanism": "SCRAM-SHA-512",
    "kafka_sasl_username": "foldlake",
    "kafka_sasl_password": PASSWORD,
}
OAUTH = {
    "kafka_bootstrap": "kafka:9093",
    "kafka_security_protocol": "SASL_SSL",
    "kafka_sasl_mechanism": "OAUTHBEARER",
    "kafka_oauth_token_url": "https://login.example/token",
    "kafka_oauth_client_id": "foldlake",
    "kafka_oauth_client_secret": CLIENT_SECRET,
    "kafka_oauth_scope": "kafka",
}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The settings of a client certificate, whose files exist."""
    found = {}
    for name in ("ca", "cert", "key"):
        path = tmp_path / f"{name}.pem"
        path.write_text(f"-----BEGIN {name}-----\n{name}\\content\n-----END {name}-----\n")
        found[f"kafka_ssl_{name}_file"] = path
    return found


def connection(tmp_path: Path, **values: Any) -> KafkaConnection:  # noqa: ANN401 - of any setting
    return Settings.of(home=tmp_path / "home", **values).kafka_connection


def java_properties(path: Path) -> dict[str, str]:
    """Return the file as Java reads it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    entries = dict(line.split("=", 1) for line in lines)
    escapes = {"\\\\": "\\", "\\n": "\n"}
    return {k: re.sub(r"\\.", lambda found: escapes[found[0]], value) for k, value in entries.items()}


def test_brokers_without_security_get_their_address_and_nothing_else(tmp_path: Path) -> None:
    kafka = connection(tmp_path, kafka_port=1234)

    assert kafka.client_settings == {"bootstrap.servers": "127.0.0.1:1234"}
    assert spark_options(kafka) == {"kafka.bootstrap.servers": "127.0.0.1:1234"}
    assert not (tmp_path / "home").exists()


def test_a_password_reaches_both_kinds_of_clients(tmp_path: Path, files: dict[str, Path]) -> None:
    kafka = connection(tmp_path, **SCRAM, kafka_ssl_ca_file=files["kafka_ssl_ca_file"])
    secrets = tmp_path / "home" / "run" / "kafka.properties"

    client = kafka.client_settings
    assert client.pop("error_cb") is note_refusal
    assert client == {
        "bootstrap.servers": "kafka:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "foldlake",
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(files["kafka_ssl_ca_file"]),
    }
    assert java_settings(kafka) == {
        "bootstrap.servers": "kafka:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files["kafka_ssl_ca_file"]),
        "sasl.jaas.config": f"${{file:{secrets}:sasl.jaas.config}}",
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    assert secrets.stat().st_mode & 0o777 == 0o600
    jaas = java_properties(secrets)["sasl.jaas.config"]
    assert jaas.startswith(
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="foldlake"'
    )
    assert jaas.endswith('password="a \\"quoted\\\\ pass${word}, ü";')


def test_a_client_certificate_reaches_both_kinds_of_clients(tmp_path: Path, files: dict[str, Path]) -> None:
    kafka = connection(tmp_path, kafka_bootstrap="kafka:9093", kafka_security_protocol="SSL", **files)

    java = java_settings(kafka)

    assert kafka.client_settings["ssl.certificate.location"] == str(files["kafka_ssl_cert_file"])
    assert kafka.client_settings["ssl.key.location"] == str(files["kafka_ssl_key_file"])
    assert java["ssl.keystore.type"] == "PEM"
    assert "sasl.jaas.config" not in java
    written = java_properties(tmp_path / "home" / "run" / "kafka.properties")
    assert written == {
        "ssl.keystore.certificate.chain": files["kafka_ssl_cert_file"].read_text(),
        "ssl.keystore.key": files["kafka_ssl_key_file"].read_text(),
    }


def test_client_credentials_reach_both_kinds_of_clients(tmp_path: Path) -> None:
    kafka = connection(tmp_path, **OAUTH)

    client, java = kafka.client_settings, java_settings(kafka)

    assert client["sasl.oauthbearer.method"] == "oidc"
    assert client["sasl.oauthbearer.token.endpoint.url"] == java["sasl.oauthbearer.token.endpoint.url"]
    assert client["sasl.oauthbearer.client.secret"] == CLIENT_SECRET
    assert java["sasl.login.callback.handler.class"].endswith(".OAuthBearerLoginCallbackHandler")
    jaas = java_properties(tmp_path / "home" / "run" / "kafka.properties")["sasl.jaas.config"]
    assert jaas.endswith('required clientId="foldlake" clientSecret="client/secret" scope="kafka";')


def test_a_changed_password_replaces_the_file(tmp_path: Path) -> None:
    path = tmp_path / "home" / "run" / "kafka.properties"
    java_settings(connection(tmp_path, **SCRAM))
    first = path.stat().st_ino
    java_settings(connection(tmp_path, **SCRAM))
    assert path.stat().st_ino == first

    java_settings(connection(tmp_path, **(SCRAM | {"kafka_sasl_password": "other"})))

    assert 'password="other"' in path.read_text()


def test_no_text_of_a_value_contains_a_secret(tmp_path: Path) -> None:
    settings = Settings.of(
        home=tmp_path,
        schema_registry_url="http://me:hidden@registry:8081",
        redis_url="redis://:hidden@r",
        **SCRAM,
    )
    kafka = settings.kafka_connection

    shown = (
        f"{settings!r} {settings} {settings.by_variable()} {kafka!r} {kafka} {settings.registry.connection!r}"
    )

    assert "hidden" not in shown
    assert "quoted" not in shown
    assert str(kafka) == "kafka:9093"
    assert settings.registry.connection.credentials == ("me", "hidden")
    assert settings.registry.url == "http://registry:8081"
    assert {"kafka_sasl_password", "kafka_oauth_client_secret", "schema_registry_url"} <= SECRETS


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kafka_bootstrap": ""}, "the embedded broker has no security: set FOLDLAKE_KAFKA_BOOTSTRAP"),
        ({"kafka_sasl_mechanism": ""}, "set FOLDLAKE_KAFKA_SASL_MECHANISM as well"),
        (
            {"kafka_security_protocol": "SSL"},
            "SASL_MECHANISM is set: set FOLDLAKE_KAFKA_SECURITY_PROTOCOL to SASL",
        ),
        ({"kafka_sasl_password": ""}, "set FOLDLAKE_KAFKA_SASL_PASSWORD as well"),
        ({"kafka_sasl_mechanism": "OAUTHBEARER"}, "set FOLDLAKE_KAFKA_OAUTH_TOKEN_URL as well"),
        ({"kafka_oauth_client_id": "me"}, "FOLDLAKE_KAFKA_OAUTH_CLIENT_ID is set, but"),
        (
            {"kafka_ssl_ca_file": "/no/such/file"},
            "FOLDLAKE_KAFKA_SSL_CA_FILE: The file /no/such/file cannot be read",
        ),
        (
            {"kafka_ssl_cert_file": __file__},
            "FOLDLAKE_KAFKA_SSL_CERT_FILE and FOLDLAKE_KAFKA_SSL_KEY_FILE belong",
        ),
        (
            {"kafka_security_protocol": "SASL_PLAINTEXT", "kafka_ssl_ca_file": __file__},
            "FOLDLAKE_KAFKA_SSL_.*_FILE is set: set FOLDLAKE_KAFKA_SECURITY_PROTOCOL to SSL or SASL_SSL",
        ),
        (
            {"kafka_sasl_mechanism": "GSSAPI"},
            "FOLDLAKE_KAFKA_SASL_MECHANISM: Input should be .*SCRAM-SHA-512",
        ),
        ({"schema_registry_username": "me"}, "set FOLDLAKE_SCHEMA_REGISTRY_URL as well"),
        (
            {
                "schema_registry_url": "https://me:secret@r",
                "schema_registry_username": "a",
                "schema_registry_password": "b",
            },
            "FOLDLAKE_SCHEMA_REGISTRY_URL contains a user's name: remove one of them",
        ),
    ],
)
def test_a_contradiction_is_an_error_that_names_the_settings(changed: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as error:
        Settings.of(**(SCRAM | changed))

    shown = f"{error.value} {error.value.__cause__}"
    assert "quoted" not in shown
    assert "secret@" not in shown


def test_settings_of_security_survive_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    password = tmp_path / "password"
    password.write_text(f"{PASSWORD}\n")
    for name, value in SCRAM.items():
        if name != "kafka_sasl_password":
            monkeypatch.setenv(f"FOLDLAKE_{name.upper()}", value)
    monkeypatch.setenv("FOLDLAKE_KAFKA_SASL_PASSWORD_FILE", str(password))
    monkeypatch.setenv("FOLDLAKE_KAFKA_SSL_CA_FILE", str(password))

    found = Settings.of().kafka

    assert found.sasl_password.get_secret_value() == PASSWORD
    assert found.ssl_ca_file == password


def test_an_error_says_that_the_brokers_refuse_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("include.errors._NewestRefusal.text", "")
    assert str(KafkaUnavailableError("Timed out")) == "Timed out"
    assert str(KafkaUnavailableError("Broker: Topic authorization failed")).endswith(
        "grant Foldlake's user the rights that docs/how-to/own-servers.md lists."
    )

    note_refusal(KafkaError(KafkaError._AUTHENTICATION, "invalid credentials"))

    assert "invalid credentials. Hint: check FOLDLAKE_KAFKA_SECURITY_PROTOCOL" in str(
        KafkaUnavailableError("Timed out")
    )
    monkeypatch.setattr("include.errors._NewestRefusal.at_s", float("-inf"))
    assert str(KafkaUnavailableError("Timed out")) == "Timed out"

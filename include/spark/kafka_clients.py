"""The settings of Java's Kafka clients, such as those of Spark. Their secrets are in a file that only its owner can read.

Kafka's own provider of configuration values reads the file when a client starts. So neither Spark's options nor a plan, a log or an
argument contains a secret. On a cluster, the workers read the file at the same path: it must be there.
"""

import threading

from include.errors import SettingsError
from include.files import PRIVATE_FILE, write_atomically
from include.settings import KafkaConnection
from include.settings.kafka import KafkaSettings, SaslMechanism, SecurityProtocol

MODULES = "org.apache.kafka.common.security"
JAAS = "sasl.jaas.config"
CERTIFICATE, KEY = "ssl.keystore.certificate.chain", "ssl.keystore.key"
PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"
# Several threads of a driver start queries.
_WRITING = threading.Lock()
LOGIN_MODULES = {
    SaslMechanism.PLAIN: f"{MODULES}.plain.PlainLoginModule",
    SaslMechanism.SCRAM_SHA_256: f"{MODULES}.scram.ScramLoginModule",
    SaslMechanism.SCRAM_SHA_512: f"{MODULES}.scram.ScramLoginModule",
    SaslMechanism.OAUTHBEARER: f"{MODULES}.oauthbearer.OAuthBearerLoginModule",
}


def java_settings(kafka: KafkaConnection) -> dict[str, str]:
    """Return the settings of a Java client, without secrets; write the file with the secrets if they need it and it differs."""
    security = kafka.security
    found = {"bootstrap.servers": kafka.servers}
    if security.security_protocol is SecurityProtocol.PLAINTEXT:
        return found
    found["security.protocol"] = security.security_protocol.value
    if security.sasl_mechanism:
        found["sasl.mechanism"] = security.sasl_mechanism.value
    if security.sasl_mechanism is SaslMechanism.OAUTHBEARER:
        found["sasl.login.callback.handler.class"] = f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
        found["sasl.oauthbearer.token.endpoint.url"] = security.oauth_token_url
    if security.ssl_ca_file:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(security.ssl_ca_file)}
    if security.ssl_cert_file:
        found["ssl.keystore.type"] = "PEM"
    if secrets := _secrets(security):
        found |= _from_file(kafka, secrets)
    return found


def spark_options(kafka: KafkaConnection) -> dict[str, str]:
    """Return the same as options of Spark's Kafka source and sink."""
    return {f"kafka.{name}": value for name, value in java_settings(kafka).items()}


def _secrets(security: KafkaSettings) -> dict[str, str]:
    found = {}
    if security.sasl_mechanism:
        found[JAAS] = _jaas(security)
    if security.ssl_cert_file and security.ssl_key_file:
        found[CERTIFICATE] = security.ssl_cert_file.read_text(encoding="utf-8")
        found[KEY] = security.ssl_key_file.read_text(encoding="utf-8")
    return found


def _jaas(security: KafkaSettings) -> str:
    if security.sasl_mechanism is SaslMechanism.OAUTHBEARER:
        options = {
            "clientId": security.oauth_client_id,
            "clientSecret": security.oauth_client_secret.get_secret_value(),
            "scope": security.oauth_scope,
        }
    else:
        options = {
            "username": security.sasl_username,
            "password": security.sasl_password.get_secret_value(),
        }
    texts = [f'{name}="{_escaped(value)}"' for name, value in options.items() if value]
    return f"{LOGIN_MODULES[security.sasl_mechanism]} required {' '.join(texts)};"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _from_file(kafka: KafkaConnection, secrets: dict[str, str]) -> dict[str, str]:
    """Return the references to these secrets in the file, which contains them then."""
    path = kafka.secrets_file
    if path is None or any(character in str(path) for character in ":}"):
        raise SettingsError(
            "Java's clients read Kafka's secrets from a file in FOLDLAKE_HOME, whose path must not contain `:` or `}`: set another FOLDLAKE_HOME."
        )
    content = "".join(f"{name}={_property(value)}\n" for name, value in secrets.items())
    with _WRITING:
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            write_atomically(path, content, mode=PRIVATE_FILE)
    references = {name: f"${{file:{path}:{name}}}" for name in secrets}
    return {"config.providers": "file", "config.providers.file.class": PROVIDER, **references}


def _property(value: str) -> str:
    """Return a value as Java's properties have it, on one line."""
    return value.replace("\\", "\\\\").replace("\r", "").replace("\n", "\\n")

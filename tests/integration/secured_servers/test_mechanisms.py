"""Each way to authenticate at the brokers works for clients of librdkafka and for Spark: appended records are read by both."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from include.kafka.topic_state import source_state
from include.kafka.topics import Topic, admin_client, ensure_topics
from include.settings import Settings
from spark_jobs.folding.kafka_source import topic_records
from stack.declaration_testing.session import lake_session
from tests.integration.secured_servers.conftest import CLIENT_SECRET, PLAIN_PASSWORD
from tests.support.security.certificates import Authority
from tests.support.security.secured_broker import SecuredBroker
from tests.support.security.token_server import TokenServer
from tests.support.temporary_stack import temporary_home, temporary_settings

SCRAM_PASSWORD = "Zw3-scram-word"  # noqa: S105 - of a server of these tests
RECORDS = 7
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "certificate")


@pytest.fixture(scope="module")
def home(keep_home: Callable[[], bool]) -> Iterator[Path]:
    with temporary_home(keep_home) as path:
        yield path


@pytest.fixture(scope="module")
def spark(home: Path) -> Iterator[SparkSession]:
    with lake_session(temporary_settings(home), home / "spark", cores=2) as session:
        yield session


def settings_of(
    mechanism: str, home: Path, broker: SecuredBroker, authority: Authority, tokens: TokenServer
) -> Settings:
    """Return the settings of a client that authenticates in this way."""
    values: dict[str, Any] = {"home": home, "kafka_ssl_ca_file": authority.ca_file}
    if mechanism == "certificate":
        certificate, key = authority.issue("foldlake")
        values |= {
            "kafka_bootstrap": f"127.0.0.1:{broker.certificate_port}",
            "kafka_security_protocol": "SSL",
            "kafka_ssl_cert_file": certificate,
            "kafka_ssl_key_file": key,
        }
        return Settings.of(**values)
    values |= {
        "kafka_bootstrap": f"127.0.0.1:{broker.port}",
        "kafka_security_protocol": "SASL_SSL",
        "kafka_sasl_mechanism": mechanism,
    }
    if mechanism == "OAUTHBEARER":
        values |= {
            "kafka_oauth_token_url": tokens.url,
            "kafka_oauth_client_id": "foldlake",
            "kafka_oauth_client_secret": CLIENT_SECRET,
            "kafka_oauth_scope": "kafka",
        }
    else:
        user, password = ("foldlake", PLAIN_PASSWORD) if mechanism == "PLAIN" else ("scram", SCRAM_PASSWORD)
        values |= {"kafka_sasl_username": user, "kafka_sasl_password": password}
    return Settings.of(**values)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_records_are_appended_and_read(
    mechanism: str,
    home: Path,
    broker: SecuredBroker,
    authority: Authority,
    tokens: TokenServer,
    spark: SparkSession,
) -> None:
    broker.add_user("scram", SCRAM_PASSWORD)
    kafka = settings_of(mechanism, home, broker, authority, tokens).kafka_connection
    topic = f"records-{mechanism}"
    ensure_topics(admin_client(kafka), [Topic(topic, 2)], 1)
    producer = Producer({**kafka.client_settings, "enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce(topic, key=str(number), value=b"record")
    assert producer.flush(30) == 0

    ends = source_state(kafka, topic).ends

    assert sum(ends.values()) == RECORDS
    assert topic_records(spark, kafka, topic, ends).count() == RECORDS

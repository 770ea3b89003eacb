"""The embedded Kafka and schema registry are configured as the rest of Foldlake requires."""

from confluent_kafka.admin import AdminClient

from include.settings import Settings
from tests.support.http.local_http import HTTP


def test_topics_are_not_created_automatically(settings: Settings) -> None:
    admin = AdminClient({"bootstrap.servers": settings.kafka.bootstrap_servers})

    topics = admin.list_topics("never-created", timeout=10).topics

    assert topics["never-created"].error is not None


def test_backward_incompatible_schema_is_refused(settings: Settings) -> None:
    subject = f"{settings.registry.url}/subjects/incompatible"
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    first = {"schema": '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}'}
    second = {
        "schema": '{"type":"record","name":"R","fields":[{"name":"a","type":"string"},{"name":"b","type":"int"}]}'
    }

    accepted = HTTP.post(f"{subject}/versions", json=first, headers=headers)
    refused = HTTP.post(f"{subject}/versions", json=second, headers=headers)

    assert accepted.status_code == 200
    assert refused.status_code == 409

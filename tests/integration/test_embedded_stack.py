"""The embedded Kafka and schema registry are configured as the rest of Foldlake requires."""

from confluent_kafka.admin import AdminClient

from include.settings import Settings
from stack.doctor.finding import State
from stack.doctor.prepared import check_kafka, check_servers, check_stack_ports
from stack.supervision.supervisor import Supervisor
from tests.support.http.local_http import HTTP


def test_topics_are_not_created_automatically(settings: Settings) -> None:
    admin = AdminClient(settings.kafka_connection.client_settings)

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


def test_the_doctor_accepts_the_ports_of_the_running_stack(settings: Settings) -> None:
    running = {name for name, state in Supervisor(settings).states().items() if state.is_running}

    findings = list(check_stack_ports(settings, running))

    assert {"kafka", "registry"} <= running
    assert [finding.state for finding in findings] == [State.OK]


def test_the_doctor_reaches_servers_of_the_settings(settings: Settings) -> None:
    named = settings.changed(
        kafka_bootstrap=settings.kafka.bootstrap_servers, schema_registry_url=settings.registry.url
    )

    findings = {finding.check: finding for finding in check_servers(named)}

    assert findings.keys() == {"Kafka", "schema registry"}
    assert {finding.state for finding in findings.values()} == {State.OK}
    assert findings["Kafka"].found == f"1 broker at {settings.kafka_connection}"


def test_the_doctor_compares_the_brokers_with_the_replicas(settings: Settings) -> None:
    finding = check_kafka(settings.changed(replication_factor=3))

    assert (finding.state, finding.needed) == (State.PROBLEM, "3 for the replicas")
    assert "FOLDLAKE_REPLICATION_FACTOR to at most 1" in finding.action

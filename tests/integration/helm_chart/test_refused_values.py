"""Values that cannot work fail with what to do."""

import pytest

from tests.support.kubernetes.helm import HelmFailedError, rendered


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("image.repository=", "image.repository is empty: build the image"),
        ("kafka.bootstrap=", "kafka.bootstrap is empty"),
        ("kafka.bootstrap=kafka", "at '/kafka/bootstrap': 'kafka' does not match"),
        ("schemaRegistry.url=", "schemaRegistry.url is empty"),
        ("schemaRegistry.url=http://user:secret@registry", "schemaRegistry.url contains a password"),
        ("airflow.databaseUrl=", "airflow.databaseUrl is empty"),
        ("airflow.databaseUrl=postgresql://a:secret@postgres/a", "airflow.databaseUrl contains a password"),
        ("secrets.existingSecret=", "secrets.existingSecret is empty"),
        ("secrets.keys.FOLDLAKE_HOME=home", "secrets.keys.FOLDLAKE_HOME cannot be set: the chart sets it"),
        ("secrets.keys.FOLDLAKE_PASSWORD=key", "secrets.keys.FOLDLAKE_PASSWORD is no setting of Foldlake"),
        ("settings.FOLDLAKE_PARTITION=12", "settings.FOLDLAKE_PARTITION is no setting of Foldlake"),
        (
            "settings.FOLDLAKE_KAFKA_BOOTSTRAP=a:1",
            "FOLDLAKE_KAFKA_BOOTSTRAP cannot be set: set kafka.bootstrap",
        ),
        (
            "settings.FOLDLAKE_LAKE_EVENTS=off,settings.FOLDLAKE_LAKE_EVENT_TABLES=off",
            "settings.FOLDLAKE_LAKE_EVENTS and its new name, FOLDLAKE_LAKE_EVENT_TABLES, are both set",
        ),
        ("settings.FOLDLAKE_AIRFLOW_PASSWORD=a", "FOLDLAKE_AIRFLOW_PASSWORD cannot be set: name its key"),
        ("settings.FOLDLAKE_REDIS_URL=redis://:secret@redis:6379", "FOLDLAKE_REDIS_URL contains a password"),
        ("nodeCertificates.existingSecret=", "nodeCertificates.existingSecret is empty: create"),
        ("settings.FOLDLAKE_AUTH=none", "settings.FOLDLAKE_AUTH is none: every client"),
        (
            "settings.FOLDLAKE_TLS_CERT_FILE=/nodes.pem",
            "FOLDLAKE_TLS_CERT_FILE cannot be set: name the Secret with the certificate in callerCertificate",
        ),
        ("serviceMonitor.enabled=true", "serviceMonitor.apiKey is empty"),
        ("ingress.enabled=true", "ingress.host is empty"),
        ("nodes.replicas=0", "at '/nodes/replicas': minimum: got 0, want 1"),
        ("node.replicas=3", "additional properties 'node' not allowed"),
        ("sharedVolume.accessModes={ReadWriteOnce}", "at '/sharedVolume/accessModes/0': value must be"),
        ("nodes.resources.limits.memory=null", "at '/nodes/resources/limits': missing property 'memory'"),
    ],
)
def test_a_value_that_cannot_work_is_refused_with_what_to_do(option: str, message: str) -> None:
    with pytest.raises(HelmFailedError) as refused:
        rendered("default", f"--set={option}")

    assert message in str(refused.value)
    assert "secret@" not in str(refused.value)

"""Executors on a Spark cluster read Kafka's secrets from the file: they are in no argument, no property and no event log."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from include.settings import Settings
from tests.support.security.certificates import Authority
from tests.support.security.secured_broker import SecuredBroker
from tests.support.security.secured_home import KAFKA_SECRET, PRIVATE, REGISTRY_SECRET, secured_home
from tests.support.stream_events import BALANCE, Ledger
from tests.support.stream_process import EventSource, make_topics
from tests.support.unsupervised_driver import LOOPBACK, log_path, spark_cluster, stream_driver
from tests.support.waiting import wait_until

EVENTS = 300
SECRETS = (KAFKA_SECRET, REGISTRY_SECRET)
EXECUTOR = "CoarseGrainedExecutorBackend"


@pytest.fixture
def settings(
    servers: Settings, keep_home: Callable[[], bool], broker: SecuredBroker, authority: Authority
) -> Iterator[Settings]:
    with secured_home(servers, broker, authority, keep_home) as found:
        yield found


@pytest.mark.endurance
def test_secrets_reach_executors_by_a_file_only(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = tmp_path / "events"
    events.mkdir()
    ledger = Ledger()
    make_topics(settings, BALANCE.source_topic)
    with spark_cluster(settings, tmp_path) as master:
        # The event log has the properties that Spark's pages show, and the plans.
        options = {"enabled": "true", "compress": "false", "dir": events.as_uri()}
        java = " ".join(f"-Dspark.eventLog.{name}={value}" for name, value in options.items())
        monkeypatch.setenv("JDK_JAVA_OPTIONS", java)
        on_cluster = settings.changed(stream_master=master, stream_driver_host=LOOPBACK)
        with stream_driver(on_cluster):
            EventSource(settings, BALANCE.source_topic).append(ledger.random_events(EVENTS))
            wait_until(lambda: ledger.is_folded(settings), "the cluster folds the events", 240)
            ledger.assert_exact(settings)
            processes = [one for one in psutil.process_iter(["cmdline", "environ"]) if one.info["cmdline"]]

    assert f"on {master}" in log_path(settings).read_text()
    executors = [one for one in processes if any(EXECUTOR in part for part in one.info["cmdline"])]
    assert len(executors) == 2
    for text in SECRETS:
        assert [one.pid for one in processes if text in " ".join(one.info["cmdline"])] == []
        assert [one.pid for one in executors if text in str(one.info["environ"])] == []
    logs = [path for path in events.rglob("*") if path.is_file()]
    text = "".join(path.read_text(errors="replace") for path in logs)
    assert "SparkListenerEnvironmentUpdate" in text
    assert "SparkListenerSQLExecutionStart" in text
    files = [path for folder in (tmp_path, settings.home) for path in folder.rglob("*") if path.is_file()]
    found = {path for path in files if any(text.encode() in path.read_bytes() for text in SECRETS)}
    assert found <= {settings.home / name for name in PRIVATE}

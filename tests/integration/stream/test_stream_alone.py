"""`./foldlake stream` runs a standalone stream driver, with any broker and without a registry, until SIGTERM."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from include.kafka.topics import Topic, ensure_topics
from include.kafka.wire_format import header
from include.read_models.balance.changelog_value import event_count_and_amount
from include.settings import CHECKOUT, Settings, settings_environment
from tests.support.documentation.page_blocks import blocks_run
from tests.support.stream_events import Ledger
from tests.support.stream_process import EventSource, records_of
from tests.support.waiting import wait_until

# Those on the page.
SCHEMA_IDS = {"FundsAdded": 1, "FundsWithdrawn": 2}
COMMAND, PROGRAM = (block.text for block in blocks_run("stream"))


def as_on_page(text: str, stream_stack: Settings) -> str:
    """Return an example of docs/how-to/stream-alone.md with the broker of the stack."""
    return text.replace("127.0.0.1:9092", stream_stack.kafka.bootstrap_servers)


def launch(stream_stack: Settings, tmp_path: Path, topic: str = "alone") -> subprocess.Popen[bytes]:
    """Start a standalone driver on a topic as on the page, in a new process group."""
    admin = AdminClient(stream_stack.kafka_connection.client_settings)
    ensure_topics(admin, [Topic("alone", 3)], 1)
    own = {"balance": topic, "trial": str(tmp_path / "state"), "./foldlake": "cli"}
    one_line = as_on_page(COMMAND, stream_stack).replace("\\\n", "")
    words = [own.get(word, word) for word in shlex.split(one_line)]
    command = [sys.executable, "-m", *words]
    environment = {**os.environ, **settings_environment(stream_stack)}
    with (tmp_path / "alone.log").open("ab") as log:
        return subprocess.Popen(
            command, cwd=CHECKOUT, env=environment, stdout=log, stderr=log, start_new_session=True
        )


@pytest.fixture
def alone(stream_stack: Settings, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A standalone driver that runs until the end of the test."""
    process = launch(stream_stack, tmp_path)
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_alone_folds_without_registry_and_stops_on_sigterm(
    stream_stack: Settings, alone: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    ledger = Ledger()
    source = EventSource(stream_stack, "alone")
    for event in ledger.random_events(3_000):
        payload = source.serializer.serialize(event)[5:]
        source.append_raw(event.customerId.encode(), header(SCHEMA_IDS[type(event).__name__]) + payload)
    source.append_raw(b"customer-1", header(3) + b"no such schema")
    source.flush()

    wait_until(lambda: ledger.is_folded(stream_stack, "trial.changelog"), "all events are folded")
    ledger.assert_exact(stream_stack, "trial.changelog")
    wait_until(
        lambda: len(records_of(stream_stack, "alone.dead-letter")) == 1, "the unknown id is a dead letter"
    )
    newest = {
        m.key(): event_count_and_amount(m.value() or b"") for m in records_of(stream_stack, "trial.changelog")
    }
    assert newest[b"customer-1"] == (ledger.counts["customer-1"], ledger.amounts["customer-1"])

    printed = subprocess.run(
        [sys.executable, "-c", as_on_page(PROGRAM, stream_stack)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert printed.stdout.startswith("b'customer-"), printed.stderr

    alone.send_signal(signal.SIGTERM)
    assert alone.wait(30) == 0

    # As if the state had been folded with another fold.
    rule = tmp_path / "state" / "checkpoint.fold"
    rule.write_text(rule.read_text().replace("sum(", "max("))
    assert launch(stream_stack, tmp_path).wait(90) == 1
    assert "is not what the state was folded with" in (tmp_path / "alone.log").read_text()

    assert launch(stream_stack, tmp_path, topic="missing").wait(60) == 1
    assert "Topic 'missing' does not exist" in (tmp_path / "alone.log").read_text()


def test_alone_ends_with_its_launcher(alone: subprocess.Popen[bytes], tmp_path: Path) -> None:
    launcher = psutil.Process(alone.pid)
    wait_until(
        lambda: (
            "driver" in (tmp_path / "alone.log").read_text() and len(launcher.children(recursive=True)) > 1
        ),
        "the driver runs",
    )
    driver = launcher.children(recursive=True)

    alone.kill()

    wait_until(lambda: not any(process.is_running() for process in driver), "all its processes have ended")

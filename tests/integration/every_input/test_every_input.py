"""Inputs of every kind on one stack: the folds never stop, values equal an oracle's, and what is refused says why; a rebuild and a check pass."""

import gzip
import json
import math
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import murmur2

from include.declarations.read_model import read_model
from include.kafka.events import GenericEvent
from include.kafka.wire_format import header
from include.nodes.record_target import record_target, records_path
from include.settings import CHECKOUT, Settings
from include.stream.status import read_stream_status
from stack.launchers.stream_driver import running
from stack.settings_environment import settings_environment
from tests.support.every_input.readings import NAME, SCHEMA, Expected, comparable, reading, write_declarations
from tests.support.faults.foreign_writers import decimal, payload
from tests.support.faults.transactions import TransactionalWriter
from tests.support.http.local_http import HTTP
from tests.support.http.record_keys import HARD_KEYS
from tests.support.json_records.payments import GOOD_PAYMENT, REFUSED_PAYMENTS
from tests.support.stream_process import EventSource, make_topics, records_of, states
from tests.support.temporary_stack import temporary_stack
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.endurance, pytest.mark.timeout(3600)]

ROUTES = Path(__file__).parents[2] / "support" / "read_models_with_routes"
NOW = datetime.now(UTC).replace(microsecond=0)
AHEAD = timedelta(hours=1)
JSON_TOPIC = "terminal-log"
GOOD_PAYMENTS = 5
KEYS = ("plain", *(key for key in HARD_KEYS if key != "plain"))


class Inputs:
    """What is written to the log, and what must become of it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        for topic in (NAME, JSON_TOPIC, "postings", "balance"):
            make_topics(settings, topic)
        self.model = read_model(NAME, settings.declaration_folders)
        (self.schema,) = self.model.event_schemas
        self.source = EventSource(settings, NAME)
        self.payments = EventSource(settings, JSON_TOPIC)
        self.expected = Expected()
        self.refused: Counter[str] = Counter()
        self.number = 0

    def event(self, key: str, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of any type
        """Return the next event."""
        self.number += 1
        return reading(key, self.number, NOW, **others)

    def value(self, event: Mapping[str, Any]) -> bytes:
        """Return the value of an event's record."""
        return self.source.serializer.serialize(GenericEvent(self.schema, event))

    def good(self, key: str, **others: Any) -> None:  # noqa: ANN401 - fields of any type
        """Append an event that is folded."""
        event = self.event(key, **others)
        self.source.append_raw(key.encode(), self.value(event))
        self.expected.add(event)

    def bad(self, reason: str, value: bytes | None, key: bytes | None = b"plain") -> None:
        """Append a record that becomes a dead letter with this reason."""
        self.source.append_raw(key, value)
        self.refused[reason] += 1

    def write_events(self) -> None:
        """Append events that are folded: of every key, and with every kind of number."""
        for key in KEYS * 2:
            self.good(key)
        for key, number in (("nan", math.nan), ("infinite", math.inf), ("below", -math.inf)):
            self.good(key, value=number)
        self.good("ahead", occurredOn=NOW + AHEAD)
        self.source.flush()

    def write_refused(self) -> None:
        """Append records that become dead letters, each between events that are folded."""
        good = self.value(self.event("plain"))
        schema_id = int.from_bytes(good[1:5], "big")
        unusable = SCHEMA | {"fields": [*SCHEMA["fields"], {"name": "wide", "type": decimal(64, 2)}]}
        url = f"{self.settings.registry.url}/subjects/{NAME}-unusable/versions"
        answer = HTTP.post(url, json={"schema": json.dumps(unusable)})
        unusable_id = int(answer.raise_for_status().json()["id"])
        late = payload(self.schema, self.event("plain", occurredOn=300_000_000_000_000))
        cases: tuple[tuple[str, bytes | None, bytes | None], ...] = (
            ("null_key", good, None),
            ("null_value", None, b"plain"),
            ("wrong_magic", b"junk", b"plain"),
            ("unknown_schema_id", header(999_999) + good[5:], b"plain"),
            ("incompatible_schema", header(unusable_id) + good[5:], b"plain"),
            ("undecodable_payload", header(schema_id) + b"\xff", b"plain"),
            ("invalid_key", good, b"another"),
            ("time_out_of_range", header(schema_id) + late, b"plain"),
            ("failed_expression", self.value(self.event("plain", divisor=0)), b"plain"),
        )
        for reason, value, key in cases:
            self.bad(reason, value, key)
            self.good("plain")
        self.source.flush()

    def write_transactions(self) -> None:
        """Commit, misplace and abort events; what is aborted leaves no trace but its markers at the end of the log."""
        writer = TransactionalWriter(self.settings, NAME)
        event = self.event("committed")
        writer.commit([(b"committed", self.value(event))])
        self.expected.add(event)
        partitions = self.settings.topics.partitions
        elsewhere = (murmur2(b"plain", partitions) + 1) % partitions
        writer.commit([(b"plain", self.value(self.event("plain")))], elsewhere)
        self.refused["wrong_partition"] += 1
        for partition in range(partitions):
            writer.abort([(b"aborted", self.value(self.event("aborted")))], partition)

    def write_json(self) -> None:
        """Append payments in JSON: those that a strict reader refuses, between good ones."""
        for _ in range(GOOD_PAYMENTS):
            self.payments.append_raw(b"terminal", GOOD_PAYMENT)
        for text, _ in REFUSED_PAYMENTS:
            self.payments.append_raw(b"terminal", text)
        self.payments.append_raw(b"terminal", GOOD_PAYMENT)
        self.payments.flush()


@pytest.fixture(scope="module")
def stack(keep_home: Callable[[], bool], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    folder = shutil.copytree(ROUTES, tmp_path_factory.mktemp("declarations") / "all")
    write_declarations(folder)
    with temporary_stack(
        keep_home=keep_home, read_models_dir=folder, partitions=2, compaction_interval_s=0
    ) as settings:
        yield settings


@pytest.fixture(scope="module")
def inputs(stack: Settings) -> Inputs:
    """Everything is written, and folded by a driver that was there before."""
    inputs = Inputs(stack)
    wait_until(lambda: len(read_stream_status(stack).versions) >= 3, "the driver folds", timeout_s=600)
    driver = running(stack.home)
    for write in (inputs.write_events, inputs.write_refused, inputs.write_json, inputs.write_transactions):
        write()
    wait_until(lambda: found_states(inputs) == expected_states(inputs), "all states are exact", timeout_s=300)
    wait_until(lambda: reasons(stack, NAME) == inputs.refused, "all letters are written", timeout_s=120)
    assert running(stack.home) == driver, "no input has stopped the driver"
    return inputs


def expected_states(inputs: Inputs) -> dict[str, dict[str, Any]]:
    return {key: comparable(state) for key, state in inputs.expected.states.items()}


def found_states(inputs: Inputs, version: int = 1) -> dict[str, dict[str, Any]]:
    found = states(inputs.settings, inputs.model, f"{NAME}.v{version}.changelog")
    return {key: comparable(record.state) for key, record in found.items()}


def reasons(settings: Settings, topic: str) -> Counter[str]:
    """Return how many dead letters of a topic have each reason."""
    found = records_of(settings, f"{topic}.dead-letter")
    headers = [dict(message.headers() or []) for message in found]
    return Counter(str(one["reason"], "utf-8") for one in headers)  # type: ignore[arg-type]  # bytes


def get(settings: Settings, node: int, target: str) -> httpx.Response:
    return HTTP.get(f"http://127.0.0.1:{settings.query_ports[node]}{target}")


def command(settings: Settings, *arguments: str) -> str:
    """Run `./foldlake` with these arguments; it must succeed. Returns what it printed."""
    environment = {**os.environ, **settings_environment(settings), "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        [sys.executable, "-m", "cli", *arguments],
        env=environment,
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_json_is_routed_exactly_or_refused_with_the_reason(stack: Settings, inputs: Inputs) -> None:
    accounts = read_model("accounts", stack.declaration_folders)
    count = GOOD_PAYMENTS + 1
    bank = {"postings": count, "total": count * Decimal("1.25")}
    wait_until(
        lambda: (
            {key: record.state for key, record in states(stack, accounts, "accounts.v1.changelog").items()}
            == {"bank": bank}
        ),
        "the payments are folded",
        timeout_s=120,
    )
    expected = Counter(reason.decode() for _, reason in REFUSED_PAYMENTS)
    wait_until(lambda: reasons(stack, JSON_TOPIC) == expected, "all others are dead letters", timeout_s=120)
    assert inputs.refused


def test_every_node_answers_for_every_key(stack: Settings, inputs: Inputs) -> None:
    expected = expected_states(inputs)

    def is_answered(node: int, key: str, state: dict[str, Any]) -> bool:
        answer = get(stack, node, record_target(NAME, key))
        if answer.status_code != 200:
            return False
        found = json.loads(answer.text, parse_float=Decimal)["state"]
        return {name: _plain(value) for name, value in found.items()} == {
            name: _plain(value) for name, value in state.items()
        }

    for node in (0, 1):
        for key, state in expected.items():
            wait_until(
                lambda node=node, key=key, state=state: is_answered(node, key, state),  # type: ignore[misc]
                f"{key!r} on node {node + 1}",
                timeout_s=60,
            )
        page = get(stack, node, f"{records_path(NAME)}?limit=1000")
        assert page.status_code == 200, page.text
        assert {one["key"] for one in page.json()["records"]} == set(expected)
        lag = get(stack, node, record_target(NAME, "committed")).headers["Foldlake-Lag-Ms"]
        assert int(lag) < 60_000, "markers at the end of the log are no events"


def _plain(value: object) -> object:
    return Decimal(str(value)) if isinstance(value, int | float | Decimal) else value


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (f"{records_path(NAME)}?key=%ff", 400),
        (f"{records_path(NAME)}?key=%zz", 400),
        (f"{records_path(NAME)}?limit=x", 400),
        (f"{records_path(NAME)}?key=unknown", 404),
        ("/api/read-models/none/records?key=a", 404),
    ],
)
@pytest.mark.usefixtures("inputs")
def test_other_requests_are_refused_with_the_reason(stack: Settings, target: str, status: int) -> None:
    answer = get(stack, 0, target)

    assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert answer.json()["detail"]


def test_a_compressed_command_is_refused(stack: Settings) -> None:
    body = gzip.compress(b'{"customerId":"a","amount":"1.00"}')
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    url = f"http://127.0.0.1:{stack.query_ports[0]}/api/balance.addFunds"
    assert HTTP.post(url, content=body, headers=headers).status_code == 415


def test_a_time_ahead_is_named(stack: Settings, inputs: Inputs) -> None:
    ahead = [version.event_time_ahead for version in read_stream_status(stack).versions]
    assert [one for one in ahead if one is not None and one.ahead_s > AHEAD.total_seconds() / 2], (
        inputs.number
    )


def test_a_rebuild_and_checks_pass(stack: Settings, inputs: Inputs) -> None:
    command(stack, "compact", NAME)
    command(stack, "quality", NAME, "--full")
    command(stack, "rebuild", NAME, "--reason", "every input", "--when-proved")
    assert found_states(inputs, version=2) == expected_states(inputs)
    command(stack, "quality", NAME, "--full")
    for key in ("plain", "/x", "nan"):
        inputs.good(key)
    inputs.source.flush()
    wait_until(
        lambda: found_states(inputs, version=2) == expected_states(inputs), "they are folded", timeout_s=120
    )
    command(stack, "compact", NAME)
    command(stack, "quality", NAME, "--mode", "incremental")

"""Inputs of every kind on one stack: the folds never stop, values equal an oracle's, and what is refused says why; a rebuild and a check pass."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from include.declarations.load import read_model
from include.nodes.record_requests import record_target, records_path
from include.settings import CHECKOUT, Settings, settings_environment
from include.status.flow_status import FlowKind
from include.status.measurement import read_stream_status
from stack.launchers.stream_driver import running
from tests.support.every_input.inputs import AHEAD, GOOD_PAYMENTS, JSON_TOPIC, OVERFLOWS, Inputs
from tests.support.every_input.readings import (
    MOST,
    NAME,
    comparable,
    write_declarations,
)
from tests.support.http.local_http import HTTP
from tests.support.json_records.payments import REFUSED_PAYMENTS
from tests.support.stream_process import records_of, states
from tests.support.temporary_stack import temporary_stack
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.endurance, pytest.mark.timeout(3600)]

ROUTES = Path(__file__).parents[2] / "support" / "read_models_with_routes"


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
    wait_until(
        lambda: len(read_stream_status(stack).of_kind(FlowKind.FOLD)) >= 3, "the driver folds", timeout_s=600
    )
    driver = running(stack.home)
    for write in (inputs.write_events, inputs.write_refused, inputs.write_json, inputs.write_transactions):
        write()
    wait_until(lambda: found_states(inputs) == expected_states(inputs), "all states are exact", timeout_s=300)
    wait_for_letters(stack, NAME, inputs.refused)
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


def wait_for_letters(settings: Settings, topic: str, expected: Counter[str]) -> None:
    """Wait for as many dead letters of a topic as expected; fail with what is there."""
    with suppress(AssertionError):
        wait_until(lambda: reasons(settings, topic).total() >= expected.total(), "all letters", timeout_s=120)
    assert reasons(settings, topic) == expected


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
    wait_for_letters(stack, JSON_TOPIC, expected)
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
        (record_target(NAME, OVERFLOWS), 404),
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
    ahead = [flow.event_time_ahead for flow in read_stream_status(stack).flows]
    assert [one for one in ahead if one is not None and one.ahead_s > AHEAD.total_seconds() / 2], (
        inputs.number
    )


def test_a_rebuild_and_checks_pass(stack: Settings, inputs: Inputs) -> None:
    command(stack, "compact", NAME)
    command(stack, "quality", NAME, "--full")
    command(stack, "rebuild", NAME, "--reason", "every input", "--auto-promote")
    assert found_states(inputs, version=2) == expected_states(inputs)
    inputs.good(OVERFLOWS, ticks=-MOST)
    inputs.source.flush()
    wait_until(lambda: OVERFLOWS in found_states(inputs, version=2), "the state is written", timeout_s=120)
    command(stack, "compact", NAME)
    command(stack, "quality", NAME, "--full")
    for key in ("plain", "/x", "nan", OVERFLOWS):
        inputs.good(key, ticks=0)
    inputs.source.flush()
    wait_until(
        lambda: found_states(inputs, version=2) == expected_states(inputs), "they are folded", timeout_s=120
    )
    command(stack, "compact", NAME)
    assert "all keys" not in command(stack, "quality", NAME, "--mode", "incremental")

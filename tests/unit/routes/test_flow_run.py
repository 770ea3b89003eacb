"""The run of a flow with a state keeps the rule and the number of tasks with which its first query has started."""

from types import SimpleNamespace
from typing import Any

import pytest

from include.declarations.kinds.flow import Flow
from include.settings import KafkaConnection, Settings
from include.stream.slot_planning import shuffle_partitions
from spark_jobs.streaming.outputs import flow_run
from spark_jobs.streaming.outputs.flow_run import FlowRun
from spark_jobs.streaming.query_spec import QueryEndpoints, StartRefusedError

FLOW = Flow("distinct", "firsts", "balance", ("FundsAdded",), "firsts", state=dict)
ENDPOINTS = QueryEndpoints(KafkaConnection(""), "balance", "firsts", 4, "checkpoints/distinct/firsts", 4)


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The files beside the checkpoint: path -> text."""
    found: dict[str, str] = {}
    monkeypatch.setattr(flow_run, "read_text", lambda _spark, path: found.get(path))
    monkeypatch.setattr(flow_run, "write_text", lambda _spark, path, text: found.update({path: text}))
    return found


def prepare(flow: Flow, **settings: object) -> None:
    context: Any = SimpleNamespace(
        spark=None,
        consumer=None,
        settings=Settings.of(**settings),
        register_event_types=lambda _flow: None,
        schema_registry=SimpleNamespace(register=lambda _topic, _schema: 1),
    )
    FlowRun(context, flow, ENDPOINTS).prepare()


def test_the_number_of_tasks_remains_when_the_setting_changes(files: dict[str, str]) -> None:
    prepare(FLOW)
    (noted,) = files.values()
    assert f'"tasks": {shuffle_partitions(Settings.of().stream, 4)}' in noted

    prepare(FLOW, stream_shuffle_partitions=3)

    assert files == {"checkpoints/distinct/firsts.state": noted}


def test_another_rule_is_refused(files: dict[str, str]) -> None:
    prepare(FLOW)
    kept = dict(files)
    changed = Flow("distinct", "firsts", "balance", ("FundsAdded", "FundsWithdrawn"), "firsts", state=dict)

    with pytest.raises(
        StartRefusedError, match=r"the state of distinct firsts was made with .*FundsWithdrawn"
    ):
        prepare(changed)
    assert files == kept


def test_a_flow_without_a_state_notes_no_rule(files: dict[str, str]) -> None:
    prepare(Flow("copy", "copies", "balance", ("FundsAdded",), "copies"))

    assert files == {}

"""The spans of fold and store are of the trace of the event, once for each version, whichever is read first: event or state."""

from collections.abc import Callable

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from include.position import Position
from include.settings import KafkaConnection, Settings
from query_api.cluster.node_state import ModelState, NodeState, VersionState
from query_api.traces import fold_traces
from query_api.traces.fold_traces import NS_PER_MS, FoldTraces
from tests.support.http.otlp_receiver import ReceivedSpan, SpanRecorder

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED, NOT_SAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"
AT, POSITION = ("funds", 0, 7), Position(0, 7, 3)
EVENT_MS, STATE_MS = 1_772_438_400_000, 1_772_438_400_010
LIVE, CANDIDATE = ("balance", 1), ("balance", 2)
Append = Callable[[], None]


def state() -> NodeState:
    versions = {n: VersionState(n, "live", f"balance.v{n}.changelog", source_topic="funds") for n in (1, 2)}
    model = ModelState("balance", "funds", 2, 1, 1, versions, owned=frozenset({0}))
    return NodeState("node-1", "http://127.0.0.1:5051", models={"balance": model})


@pytest.fixture
def exporter() -> SpanRecorder:
    return SpanRecorder()


@pytest.fixture
def traces(exporter: SpanRecorder) -> FoldTraces:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    kafka: KafkaConnection = Settings.of(kafka_bootstrap="127.0.0.1:1").kafka_connection
    return FoldTraces(kafka, provider.get_tracer("test"), state)


def by_name(exporter: SpanRecorder) -> dict[str, ReceivedSpan]:
    return {span.name: span for span in exporter.spans}


@pytest.mark.parametrize("is_event_first", [True, False])
def test_fold_and_store_follow_the_event(
    traces: FoldTraces, exporter: SpanRecorder, *, is_event_first: bool
) -> None:
    steps: list[Append] = [
        lambda: traces.appended(AT, SAMPLED, EVENT_MS),
        lambda: traces.stored(LIVE, [(POSITION, STATE_MS)]),
    ]
    for step in steps if is_event_first else reversed(steps):
        step()

    spans = by_name(exporter)
    fold, store = spans["fold balance"], spans["store balance"]
    assert fold.trace_id == store.trace_id == TRACE
    assert fold.parent_id == PARENT
    assert store.parent_id == fold.span_id
    assert (fold.started_ns, fold.ended_ns) == (EVENT_MS * NS_PER_MS, STATE_MS * NS_PER_MS)
    assert store.started_ns == fold.ended_ns < store.ended_ns
    assert fold.attributes["messaging.kafka.offset"] == 7
    assert fold.attributes["foldlake.version"] == 1


def test_each_version_has_its_spans_once(traces: FoldTraces, exporter: SpanRecorder) -> None:
    traces.stored(LIVE, [(POSITION, STATE_MS), (POSITION, STATE_MS)])
    traces.appended(AT, SAMPLED, EVENT_MS)
    for version in (LIVE, CANDIDATE, LIVE, CANDIDATE):
        traces.stored(version, [(POSITION, STATE_MS)])

    assert sorted(span.attributes["foldlake.version"] for span in exporter.spans) == [
        1,
        1,
        2,
        2,
    ]


def test_a_state_that_is_older_than_its_event_by_another_clock_has_no_negative_time(
    traces: FoldTraces, exporter: SpanRecorder
) -> None:
    ahead_ms = 2 * STATE_MS
    traces.appended(AT, SAMPLED, ahead_ms)
    traces.stored(LIVE, [(POSITION, STATE_MS)])

    spans = exporter.spans
    assert len(spans) == 2
    assert all(span.started_ns == span.ended_ns == ahead_ms * NS_PER_MS for span in spans)


@pytest.mark.parametrize("given", [NOT_SAMPLED, "x", f"00-{TRACE}-{PARENT}"])
def test_what_is_not_traced_has_no_spans(traces: FoldTraces, exporter: SpanRecorder, given: str) -> None:
    traces.appended(AT, given, EVENT_MS)
    traces.stored(LIVE, [(POSITION, STATE_MS)])

    assert exporter.spans == []


@pytest.mark.parametrize("at", [("funds", 0, 8), ("funds", 1, 7), ("other", 0, 7)])
def test_only_the_event_at_the_position_is_matched(
    traces: FoldTraces, exporter: SpanRecorder, at: tuple[str, int, int]
) -> None:
    traces.appended(at, SAMPLED, EVENT_MS)
    # Partition 1 is another node's.
    traces.stored(LIVE, [(POSITION, STATE_MS), (Position(1, 7, 3), STATE_MS)])

    assert exporter.spans == []


def test_memory_is_bounded(
    traces: FoldTraces, exporter: SpanRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_traces, "KEPT", 2)
    offsets = range(4)
    for offset in offsets:
        traces.appended(("funds", 0, offset), SAMPLED, EVENT_MS)
    traces.stored(LIVE, [(Position(0, offset, 1), STATE_MS) for offset in offsets])

    assert {span.attributes["messaging.kafka.offset"] for span in exporter.spans} == {2, 3}
    # The states of the events that were forgotten are kept, until newer ones take their place.
    traces.stored(LIVE, [(Position(0, offset, 1), STATE_MS) for offset in (10, 11)])
    traces.appended(("funds", 0, 0), SAMPLED, EVENT_MS)
    assert len(exporter.spans) == 4

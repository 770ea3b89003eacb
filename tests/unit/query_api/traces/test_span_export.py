"""Spans reach the collector; what it does not take is dropped and counted, and delays nobody."""

import threading
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from include.errors import SettingsError
from include.settings import Settings
from query_api.traces import span_export
from query_api.traces.span_export import SpanExport, tracer_of
from tests.support.http.otlp_receiver import otlp_receiver

TRACES = "FOLDLAKE_TRACES"


class HeldExporter(SpanExporter):
    """An exporter whose collector answers nothing until it is released."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.sent = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Wait for the collector."""
        self.released.wait()
        self.sent += len(spans)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Do nothing."""


def test_a_span_reaches_the_collector_with_the_secret_headers() -> None:
    dropped: list[int] = []
    with otlp_receiver() as collector:
        settings = Settings.of(
            traces_url=collector.url, traces_headers="Authorization=Bearer a=b, X-Scope=one", node_name="n"
        )
        tracer, export = tracer_of(settings, "materializer", dropped.append)
        tracer.start_span("one").end()
        export.shutdown()

        (span,) = collector.spans
        assert (span.name, span.node, collector.headers["authorization"]) == ("one", "n", "Bearer a=b")
        assert collector.headers["x-scope"] == "one"
    assert dropped == []


def test_a_full_queue_drops_spans_and_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_export, "MAX_SPANS", 8)
    monkeypatch.setattr(span_export, "BATCH_SPANS", 4)
    dropped: list[int] = []
    exporter = HeldExporter()
    export = SpanExport(exporter, "the collector", dropped.append)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(export)
    tracer = provider.get_tracer("test")

    for _ in range(100):
        tracer.start_span("one").end()
    # One batch is being sent, and the queue is full.
    assert 100 - 8 - 4 <= sum(dropped) < 100
    exporter.released.set()
    assert export.force_flush()

    assert exporter.sent + sum(dropped) == 100


def test_a_dead_collector_costs_a_line_of_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_export, "EXPORT_TIMEOUT_S", 0.1)
    dropped: list[int] = []
    tracer, export = tracer_of(
        Settings.of(traces_url="http://127.0.0.1:1/v1/traces"), "server", dropped.append
    )

    for _ in range(3):
        tracer.start_span("one").end()
        assert export.force_flush()

    assert sum(dropped) == 3
    assert [record.getMessage() for record in caplog.records] == [
        "1 spans were dropped: the collector at http://127.0.0.1:1/v1/traces does not take them"
    ]


def test_what_is_not_sampled_is_neither_sent_nor_counted() -> None:
    dropped: list[int] = []
    with otlp_receiver() as collector:
        settings = Settings.of(traces_url=collector.url, traces_sample_ratio=0.0)
        tracer, export = tracer_of(settings, "server", dropped.append)
        tracer.start_span("one").end()
        export.shutdown()

        assert collector.spans == []
    assert dropped == []


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("traces_url", "localhost:4318"),
        ("traces_url", "http://user:hidden@localhost:4318"),
        ("traces_url", "file:///hidden"),
        ("traces_headers", "hidden"),
        ("traces_headers", "=hidden"),
        ("traces_sample_ratio", 1.5),
    ],
)
def test_a_wrong_setting_is_named_without_its_value(variable: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"FOLDLAKE_{variable.upper()}") as raised:
        Settings.of(**{variable: value})

    assert "hidden" not in str(raised.value)

"""The way of spans to the collector: batches from a bounded queue, which neither delay a request nor a commit.

A span that finds the queue full, and one that the collector does not take, is dropped and counted.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Tracer

from include.settings import Settings, TraceSettings

MAX_SPANS = 2048
BATCH_SPANS = 512
BATCH_INTERVAL_S = 1.0
EXPORT_TIMEOUT_S = 5.0
REPORT_INTERVAL_S = 60.0
# How long a process that stops tries to send what it has left.
FLUSH_TIMEOUT_S = 1.0

log = logging.getLogger(__name__)


class SpanExport(SpanProcessor):
    """Sends ended spans with an exporter, in batches. Thread-safe.

    collector: names it in the log. on_drop: called with the number of spans that are dropped.
    """

    def __init__(self, exporter: SpanExporter, collector: str, on_drop: Callable[[int], None]) -> None:
        self._collector = collector
        self._on_drop = on_drop
        self._lock = threading.Lock()
        self._waiting = 0
        self._dropped = 0
        self._next_report_s = 0.0
        self._batches = BatchSpanProcessor(
            _CountedExporter(exporter, self._taken, self._drop),
            max_queue_size=MAX_SPANS,
            max_export_batch_size=BATCH_SPANS,
            schedule_delay_millis=BATCH_INTERVAL_S * 1000,
        )

    def on_end(self, span: ReadableSpan) -> None:
        """Put a span into the queue, if there is room."""
        if not span.context.trace_flags.sampled:
            return
        with self._lock:
            is_full = self._waiting >= MAX_SPANS
            self._waiting += not is_full
        if is_full:
            self._drop(1)
        else:
            self._batches.on_end(span)

    def shutdown(self) -> None:
        """Send what is left, for a short time."""
        flushing = threading.Thread(target=self._batches.force_flush, name="last spans", daemon=True)
        flushing.start()
        flushing.join(FLUSH_TIMEOUT_S)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what is in the queue now; return whether it was sent."""
        return self._batches.force_flush(timeout_millis)

    def _taken(self, number: int) -> None:
        with self._lock:
            self._waiting -= number

    def _drop(self, number: int) -> None:
        self._on_drop(number)
        with self._lock:
            self._dropped += number
            if time.monotonic() < self._next_report_s:
                return
            self._next_report_s = time.monotonic() + REPORT_INTERVAL_S
            dropped, self._dropped = self._dropped, 0
        log.warning("%d spans were dropped: the collector at %s does not take them", dropped, self._collector)


class _CountedExporter(SpanExporter):
    """An exporter that reports what it takes from the queue, and what it could not send."""

    def __init__(
        self, exporter: SpanExporter, taken: Callable[[int], None], failed: Callable[[int], None]
    ) -> None:
        self._exporter = exporter
        self._taken = taken
        self._failed = failed

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch."""
        self._taken(len(spans))
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            if result is not SpanExportResult.SUCCESS:
                self._failed(len(spans))
        return result

    def shutdown(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()


def tracer_of(settings: Settings, role: str, on_drop: Callable[[int], None]) -> tuple[Tracer, SpanExport]:
    """Return the tracer of this process, and the way of its spans. role: of the process."""
    traces = settings.traces
    # A dead collector would have a line for each batch.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    exporter = OTLPSpanExporter(traces.url, headers=traces.header_values, timeout=EXPORT_TIMEOUT_S)
    export = SpanExport(exporter, traces.url, on_drop)
    names = {"service.name": "foldlake", "service.instance.id": settings.node.name, "foldlake.role": role}
    # At its end, a process must not wait for a collector.
    provider = TracerProvider(sampler(traces), Resource(names), shutdown_on_exit=False)
    provider.add_span_processor(export)
    return provider.get_tracer("foldlake"), export


def sampler(traces: TraceSettings) -> ParentBased:
    """Return the rule by which requests are traced: as `traceparent` says, else by the ratio."""
    return ParentBased(TraceIdRatioBased(traces.sample_ratio))

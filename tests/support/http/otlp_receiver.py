"""A collector of traces: receives spans in OTLP over HTTP, and keeps them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from tests.support.http.played_server import serving

PATH = "/v1/traces"
KINDS = {
    Span.SPAN_KIND_SERVER: "server",
    Span.SPAN_KIND_CLIENT: "client",
    Span.SPAN_KIND_CONSUMER: "consumer",
    Span.SPAN_KIND_INTERNAL: "internal",
}


@dataclass(frozen=True)
class ReceivedSpan:
    """A span; ids are in hexadecimal, times in ns of Unix time. node: the process's."""

    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    started_ns: int
    ended_ns: int
    node: str
    attributes: dict[str, Any]


class OtlpReceiver(ThreadingHTTPServer):
    """The server. headers: of the newest request. status: what it answers."""

    daemon_threads = True

    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        self.headers: dict[str, str] = {}
        self.status = 200
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        """Where spans are sent."""
        return f"http://127.0.0.1:{self.server_port}{PATH}"

    def of_trace(self, trace_id: str) -> list[ReceivedSpan]:
        """Return the spans of a trace by their start."""
        return sorted(
            (span for span in list(self.spans) if span.trace_id == trace_id),
            key=lambda span: span.started_ns,
        )


class _Handler(BaseHTTPRequestHandler):
    server: OtlpReceiver

    def do_POST(self) -> None:
        request = ExportTraceServiceRequest.FromString(
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
        )
        server = self.server
        server.headers = {name.lower(): value for name, value in self.headers.items()}
        if server.status == 200 and self.path == PATH:
            server.spans.extend(_spans(request))
        body = ExportTraceServiceResponse().SerializeToString()
        self.send_response(server.status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def _spans(request: ExportTraceServiceRequest) -> Iterator[ReceivedSpan]:
    for of_resource in request.resource_spans:
        resource = _values(of_resource.resource.attributes)
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                yield ReceivedSpan(
                    span.name,
                    KINDS[span.kind],
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    str(resource.get("service.instance.id", "")),
                    _values(span.attributes),
                )


def _values(attributes: Any) -> dict[str, Any]:  # noqa: ANN401 - of the generated classes
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@contextmanager
def otlp_receiver() -> Iterator[OtlpReceiver]:
    """Run a collector during a block."""
    with serving(OtlpReceiver()) as server:
        yield server


class SpanRecorder(SpanExporter):
    """Keeps the spans of this process as a collector would receive them."""

    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Keep a batch."""
        self.spans.extend(_spans(encode_spans(spans)))
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Do nothing."""

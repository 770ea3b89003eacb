"""A traced request has a span that continues its client's trace, and so has each request to another node."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from werkzeug.test import Client

from include.nodes.peers import HOP_ANY, HOP_HEADER
from include.observability.request_context import CURRENT, REQUEST_ID_HEADER, Request, forwarded_headers
from include.settings import TraceSettings
from query_api.http.wsgi import TracedPath
from query_api.traces.request_traces import RequestTraces
from query_api.traces.span_export import sampler
from tests.support.http.otlp_receiver import ReceivedSpan, SpanRecorder
from tests.unit.query_api.http.parcels import Node, parcels_settings

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED, NOT_SAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"
LOOKUP = "/api/parcels.getPlace"
PLAIN = f"{LOOKUP}?parcelId=A%201/2"


@dataclass
class Traced:
    """A node whose requests are traced, and the spans that have ended."""

    client: Client
    traces: RequestTraces
    exporter: SpanRecorder

    @property
    def spans(self) -> list[ReceivedSpan]:
        """The ended spans."""
        return self.exporter.spans

    def only(self) -> ReceivedSpan:
        """Return the only span."""
        (span,) = self.spans
        return span


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[Traced]:
    settings = parcels_settings(tmp_path).changed(traces_url="http://127.0.0.1:1/v1/traces")
    exporter = SpanRecorder()
    provider = TracerProvider(sampler(TraceSettings()), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traces = RequestTraces(provider.get_tracer("test"))
    node = Node(settings)
    fast = TracedPath(node.router, node.hosts, node.app.wsgi_app, None, traces)
    yield Traced(Client(fast), traces, exporter)
    CURRENT.request = None


def test_a_plain_lookup_continues_the_trace_of_its_client(traced: Traced) -> None:
    answer = traced.client.get(PLAIN, headers={"traceparent": SAMPLED})

    span = traced.only()
    assert (span.name, span.kind) == (f"GET {LOOKUP}", "server")
    assert (span.trace_id, span.parent_id) == (TRACE, PARENT)
    assert span.attributes["http.response.status_code"] == 200
    assert span.attributes["foldlake.request_id"] == answer.headers[REQUEST_ID_HEADER]


@pytest.mark.parametrize("given", ["", "x", "00-0-0-01", f"00-{'0' * 32}-{PARENT}-01"])
def test_without_a_valid_trace_there_is_a_new_one(traced: Traced, given: str) -> None:
    traced.client.get(PLAIN, headers={"traceparent": given})

    assert traced.only().parent_id == ""


def test_a_client_decides_that_its_request_is_not_traced(traced: Traced) -> None:
    traced.client.get(PLAIN, headers={"traceparent": NOT_SAMPLED})

    assert traced.spans == []


@pytest.mark.parametrize(
    ("path", "name", "status"),
    [
        (f"{LOOKUP}?parcelId=secret", f"GET {LOOKUP}", 404),
        (
            "/api/read-models/parcels/records/secret",
            "GET /api/read-models/<name>/records/<key:key>",
            404,
        ),
        ("/secret", "GET", 404),
        ("/openapi.json", "GET /openapi.json", 200),
    ],
)
def test_a_span_has_the_path_of_the_endpoint_and_no_key(
    traced: Traced, path: str, name: str, status: int
) -> None:
    answer = traced.client.get(path)

    span = traced.only()
    assert (answer.status_code, span.name) == (status, name)
    assert "secret" not in json.dumps(span.attributes)


@pytest.mark.parametrize(("path", "headers"), [("/healthz", {}), (PLAIN, {HOP_HEADER: HOP_ANY})])
def test_health_checks_and_requests_of_nodes_are_traced_only_in_a_trace(
    traced: Traced, path: str, headers: dict[str, str]
) -> None:
    assert traced.client.get(path, headers=headers).status_code == 200
    assert traced.spans == []

    traced.client.get(path, headers={**headers, "traceparent": SAMPLED})
    assert traced.only().parent_id == PARENT


def test_a_request_to_another_node_is_a_child_and_carries_its_own_span(traced: Traced) -> None:
    sent: list[str] = []
    CURRENT.request = {"foldlake.traceparent": SAMPLED}

    traced.traces.ask("http://node-2:5051", lambda: sent.append(forwarded_headers()))

    span = traced.only()
    assert (span.name, span.kind) == ("GET node-2:5051", "client")
    assert span.parent_id == PARENT
    assert f"traceparent: 00-{TRACE}-{span.span_id}-01\r\n" in sent[0]
    assert forwarded_headers().endswith(f"{SAMPLED}\r\n")


def test_outside_a_traced_request_there_is_no_span(traced: Traced) -> None:
    requests: tuple[Request | None, ...] = (None, {})
    for request in requests:
        CURRENT.request = request
        assert traced.traces.ask("http://node-2:5051", lambda: 1) == 1

    assert traced.spans == []

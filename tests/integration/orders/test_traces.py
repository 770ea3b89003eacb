"""One trace goes from a command through its event, the fold, the store and a lookup that another node answers."""

import secrets
from dataclasses import dataclass

import httpx
import pytest
from confluent_kafka import TopicPartition

from include.kafka.log_reading import log_consumer
from include.settings import Settings
from tests.support.commands import ADD
from tests.support.http.local_http import HTTP
from tests.support.http.otlp_receiver import OtlpReceiver, ReceivedSpan
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

LOOKUP = "/api/customers.getBalance"
CLIENT_SPAN = "b7ad6b7169203331"
COMMAND_SPAN, FOLD, STORE, LOOKUP_SPAN = f"POST {ADD}", "fold balance", "store balance", f"GET {LOOKUP}"
TRACED_S = 10.0


@dataclass(frozen=True)
class Client:
    """A client whose requests belong to one trace."""

    settings: Settings
    trace_id: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers of its requests."""
        return {"traceparent": f"00-{self.trace_id}-{CLIENT_SPAN}-01", "X-Request-Id": self.trace_id}

    def add(self) -> httpx.Response:
        """Send a command for the customer with the trace's name."""
        body = {"customerId": self.trace_id, "amount": "1.00"}
        return HTTP.post(self._url(0, ADD), json=body, headers=self.headers)

    def look_up(self, node: int) -> httpx.Response:
        """Ask a node for the customer."""
        return HTTP.get(self._url(node, f"{LOOKUP}?customerId={self.trace_id}"), headers=self.headers)

    def _url(self, node: int, path: str) -> str:
        return f"http://127.0.0.1:{self.settings.query_ports[node]}{path}"


@pytest.fixture
def traced(settings: Settings, driver: SharedDriver, collector: OtlpReceiver) -> Client:
    """A client whose first command has been folded in its trace."""
    driver.ensure_running()
    clients: list[Client] = []

    def is_traced() -> bool:
        """Whether an event was written after its node had begun to read the ends of the topic."""
        client = Client(settings, secrets.token_hex(16))
        if client.add().status_code != 202:
            return False
        clients.append(client)
        try:
            # Two processes send them, each in batches of its own.
            wait_until(
                lambda: names(collector, client) >= {COMMAND_SPAN, FOLD, STORE},
                "the state is traced",
                timeout_s=TRACED_S,
            )
        except AssertionError:
            return False
        return True

    wait_until(is_traced, "a command is traced into the store")
    return clients[-1]


def names(collector: OtlpReceiver, client: Client) -> set[str]:
    return {span.name for span in collector.of_trace(client.trace_id)}


def spans_of(collector: OtlpReceiver, client: Client, name: str) -> list[ReceivedSpan]:
    return [span for span in collector.of_trace(client.trace_id) if span.name == name]


def test_a_command_is_followed_into_the_store(traced: Client, collector: OtlpReceiver) -> None:
    (command,), (fold,), (store,) = (
        spans_of(collector, traced, name) for name in (COMMAND_SPAN, FOLD, STORE)
    )

    assert (command.kind, command.parent_id) == ("server", CLIENT_SPAN)
    assert (fold.kind, fold.parent_id) == ("consumer", command.span_id)
    assert (store.kind, store.parent_id) == ("internal", fold.span_id)
    assert fold.ended_ns == store.started_ns <= store.ended_ns
    assert fold.started_ns <= fold.ended_ns
    assert command.attributes["http.response.status_code"] == 202
    assert fold.attributes["messaging.destination.name"] == "balance"
    assert fold.node == store.node


def test_the_event_carries_trace_and_request(traced: Client, collector: OtlpReceiver) -> None:
    (command,) = spans_of(collector, traced, COMMAND_SPAN)
    (fold,) = spans_of(collector, traced, FOLD)
    consumer = log_consumer(traced.settings.kafka_connection)
    partition = int(fold.attributes["messaging.destination.partition.id"])
    consumer.assign([TopicPartition("balance", partition, fold.attributes["messaging.kafka.offset"])])
    try:
        event = consumer.poll(10.0)
    finally:
        consumer.close()

    assert event is not None
    assert dict(event.headers() or ()) == {
        "request-id": traced.trace_id.encode(),
        "traceparent": f"00-{traced.trace_id}-{command.span_id}-01".encode(),
    }


def test_a_lookup_that_another_node_answers_is_traced_on_both(
    traced: Client, collector: OtlpReceiver
) -> None:
    answers = [traced.look_up(node) for node in (0, 1)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert {answer.headers["X-Request-Id"] for answer in answers} == {traced.trace_id}

    def clients() -> list[ReceivedSpan]:
        return [span for span in collector.of_trace(traced.trace_id) if span.kind == "client"]

    # Each node asked once, and one of them has asked the other.
    wait_until(lambda: len(spans_of(collector, traced, LOOKUP_SPAN)) >= 3, "three spans of lookups")
    wait_until(clients, "the span of the request to the other node")
    asked = clients()[-1]
    servers = {span.span_id: span for span in spans_of(collector, traced, LOOKUP_SPAN)}
    answering = next(span for span in servers.values() if span.parent_id == asked.span_id)

    assert servers[asked.parent_id].parent_id == CLIENT_SPAN
    assert servers[asked.parent_id].node == asked.node != answering.node
    assert {span.attributes["foldlake.request_id"] for span in servers.values()} == {traced.trace_id}


def test_a_request_without_a_trace_has_none(traced: Client, collector: OtlpReceiver) -> None:
    before = len(collector.spans)
    traced_before = len(collector.of_trace(traced.trace_id))
    url = f"http://127.0.0.1:{traced.settings.query_ports[0]}{LOOKUP}?customerId={traced.trace_id}"

    assert HTTP.get(url).status_code == 200

    # A traced request is sent in a later batch of the same process, or of another one.
    traced.look_up(0)
    wait_until(lambda: len(collector.of_trace(traced.trace_id)) > traced_before, "the traced request")
    assert len(collector.spans) - before == len(collector.of_trace(traced.trace_id)) - traced_before

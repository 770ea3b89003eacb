"""A request has one id: its client's if it is well formed, else a generated one, which goes on to other nodes and into events."""

from threading import Thread

import pytest

from include.observability.request_context import (
    CURRENT,
    GIVEN_ID_KEY,
    REQUEST_ID_KEY,
    TRACEPARENT_KEY,
    forwarded_headers,
    id_of,
    in_this_request,
    record_headers,
    request_id,
    trace_id,
)

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(autouse=True)
def outside_a_request() -> None:
    CURRENT.request = None


@pytest.mark.parametrize("given", ["a", "3f2c/7:9", "A" * 128, "user@host=1+2~3_4.5-6"])
def test_a_well_formed_id_is_kept(given: str) -> None:
    assert id_of({GIVEN_ID_KEY: given}) == given


@pytest.mark.parametrize(
    "given",
    ["", " ", "a b", "a\r\nSet-Cookie: b", "a\n", '"', "a,b", "A" * 129, "é", "\u2028", "\x00", "\\", "٣"],
)
def test_any_other_id_is_replaced(given: str) -> None:
    found = id_of({GIVEN_ID_KEY: given})

    assert found != given
    assert len(found) == 32
    assert found.isalnum()


def test_an_id_is_generated_once_and_only_if_it_is_needed() -> None:
    request: dict[str, object] = {}
    CURRENT.request = request

    assert REQUEST_ID_KEY not in request
    assert request_id() == request_id() != id_of({})


def test_outside_a_request_there_is_nothing() -> None:
    assert (request_id(), trace_id(), forwarded_headers(), record_headers()) == ("", "", "", {})


def test_id_and_trace_go_on() -> None:
    CURRENT.request = {GIVEN_ID_KEY: "one", TRACEPARENT_KEY: TRACE}

    assert forwarded_headers() == f"X-Request-Id: one\r\ntraceparent: {TRACE}\r\n"
    assert record_headers() == {"request-id": "one", "traceparent": TRACE}
    assert trace_id() == TRACE.split("-")[1]


def test_another_thread_works_in_the_name_of_the_request_for_a_time() -> None:
    CURRENT.request = {GIVEN_ID_KEY: "one"}
    of_request, found = in_this_request(request_id), []

    def work() -> None:
        found.extend([request_id(), of_request(), request_id()])

    thread = Thread(target=work)
    thread.start()
    thread.join()

    assert found == ["", "one", ""]

"""Every node returns the exact balance with its position and role; a refused lookup returns the reason."""

from decimal import Decimal
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.http.local_http import HTTP
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until

CUSTOMER = "customer 7/é"


def test_every_customer_is_answered_exactly_on_both_nodes(nodes: NodeStack) -> None:
    assert nodes.wrong() == []


def test_both_nodes_own_partitions_and_stand_by_for_each_other(nodes: NodeStack) -> None:
    urls = {f"http://127.0.0.1:{port}" for port in nodes.ports}

    def partitions() -> list[dict[str, Any]]:
        reports: list[dict[str, Any]] = nodes.get(nodes.ports[0], "/api/partitions").json()
        return reports

    wait_until(lambda: all(report["lagRecords"] == 0 for report in partitions()), "no partition lags")
    # A node that takes too long to answer reports nothing, and its standby reports instead.
    wait_until(nodes.is_settled, "every owner reports")
    reports = partitions()
    assert {report["owner"] for report in reports} == urls
    assert all({report["owner"], *report["standbys"]} == urls for report in reports)
    assert all(report["isReady"] for report in reports)
    assert all(report["reportedBy"] == report["owner"] for report in reports)


def test_answer_has_version_position_node_and_role(nodes: NodeStack) -> None:
    answers: list[httpx.Response] = []

    def owner_answers() -> bool:
        # If the owner takes longer than half a second, the standby answers.
        answers[:] = [nodes.balance(port, CUSTOMER) for port in nodes.ports]
        return {answer.headers["Foldlake-Role"] for answer in answers} == {"owner"}

    wait_until(owner_answers, "the owner answers on both nodes")
    assert {answer.headers["Foldlake-Version"] for answer in answers} == {"1"}
    assert len({answer.headers["Foldlake-Node"] for answer in answers}) == 1, (
        "the owner answers on both nodes"
    )
    assert {answer.headers["Foldlake-Position"].partition(", ")[2] for answer in answers} == {
        "offset=1, event_count=1"
    }


def test_whole_record_is_typed_json(nodes: NodeStack) -> None:
    for port in nodes.ports:
        answer = nodes.get(port, f"/api/read-models/balance/records/{quote(CUSTOMER, safe='')}")

        record = answer.json(parse_float=Decimal)
        assert record["state"] == {"amount": Decimal("5.07")}
        assert str(record["state"]["amount"]) == "5.07"
        assert record["key"] == CUSTOMER
        assert (record["version"], record["eventCount"], record["sourceOffset"]) == (1, 1, 1)
        assert record["occurredOn"] == "2026-01-02T03:04:05+00:00"


@pytest.mark.parametrize(
    ("path", "status", "slug"),
    [
        ("/api/customers.getBalance?customerId=unknown", 404, "unknown-key"),
        ("/api/customers.getBalance", 400, "missing-customer-id"),
        ("/api/customers.getBalance?customerId=", 400, "missing-customer-id"),
        ("/api/customers.getBalance?customerId=%ff", 400, "invalid-query"),
        ("/api/customers.getBalance?customerId=a&customerId=b", 400, "repeated-parameter"),
        ("/api/customers.getBalance?customerid=a", 400, "unknown-parameter"),
        ("/api/customers.getBalance?customerId=" + "x" * 257, 400, "customer-id-too-long"),
        ("/api/customers.getBalance?customerId=a&minOffset=x", 400, "invalid-bound"),
        ("/api/read-models/nothing/records/1", 404, "unknown-model"),
        ("/api/read-models/balance/records/1?version=99", 404, "unknown-model"),
        ("/api/nothing", 404, "not-found"),
    ],
)
def test_a_refused_lookup_gives_the_reason(nodes: NodeStack, path: str, status: int, slug: str) -> None:
    for port in nodes.ports:
        answer = nodes.get(port, path)

        assert (answer.status_code, answer.json()["type"]) == (status, f"urn:foldlake:problem:{slug}")
        assert answer.headers["Content-Type"] == "application/problem+json"


def test_unsupported_method_is_refused(nodes: NodeStack) -> None:
    answer = HTTP.post(f"http://127.0.0.1:{nodes.ports[0]}/api/customers.getBalance")

    assert answer.status_code == 405
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_bound_is_waited_for_and_then_refused(nodes: NodeStack) -> None:
    for port in nodes.ports:
        met = nodes.get(port, f"/api/customers.getBalance?customerId={quote(CUSTOMER)}&minOffset=1")
        unmet = nodes.get(port, f"/api/customers.getBalance?customerId={quote(CUSTOMER)}&minOffset=1000")

        assert (met.status_code, met.text) == (200, '{"amount":5.07}')
        assert unmet.status_code == 503
        assert unmet.json()["type"] == "urn:foldlake:problem:not-up-to-bound"
        assert unmet.headers["Retry-After"] == "1"


def test_write_is_read_back_with_its_bound(nodes: NodeStack) -> None:
    for amount in (Decimal("1.10"), Decimal("2.20"), Decimal("3.30")):
        nodes.put("bound", amount)
        nodes.writer.flush()
        bound = nodes._event_counts["bound"]
        path = f"/api/customers.getBalance?customerId=bound&minOffset={bound}"
        for port in nodes.ports:
            answer = nodes.get(port, path)
            while answer.status_code == 503:  # not there within a second: "Retry-After: 1"
                assert answer.json()["type"] == "urn:foldlake:problem:not-up-to-bound"
                answer = nodes.get(port, path)

            assert answer.text == f'{{"amount":{amount}}}'


def test_hop_to_a_node_that_is_not_the_owner_is_refused(nodes: NodeStack) -> None:
    statuses = {
        HTTP.get(
            f"http://127.0.0.1:{port}/api/customers.getBalance",
            params={"customerId": CUSTOMER},
            headers={"Foldlake-Hop": "owner"},
        ).status_code
        for port in nodes.ports
    }

    assert statuses == {200, 421}


def test_read_models_are_listed(nodes: NodeStack) -> None:
    (model,) = nodes.get(nodes.ports[1], "/api/read-models").json()

    assert (model["name"], model["live"], model["partitions"]) == ("balance", 1, 4)
    assert [(v["version"], v["stage"]) for v in model["versions"]] == [(1, "live")]


def test_metrics_count_lookups_of_all_workers(nodes: NodeStack) -> None:
    def counted() -> float:
        lines = nodes.get(nodes.ports[0], "/metrics").text.splitlines()
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith('foldlake_lookups_total{outcome="ok"')
        )

    before = counted()
    for _ in range(40):
        assert nodes.balance(nodes.ports[0], CUSTOMER).status_code == 200

    wait_until(lambda: counted() >= before + 40, "40 more lookups are counted", 5)

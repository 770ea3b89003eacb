"""Every problem has a page for people and a description for programs, and no other problem can be created."""

import json

import pytest

from query_api.http.contract.contract_routes import marked_up
from query_api.http.problem_kinds import KINDS, is_kind, kind_of, page_of
from query_api.http.problems import ProblemError, busy_problem, http_problem, problem_reply
from query_api.lookup.client_slots import ClientSlots, NoFreeSlotError
from query_api.lookup.lookup_results import FailureReason
from tests.unit.query_api.http.stops import StopsNode, stops_settings

BROWSER = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> StopsNode:
    found = StopsNode(stops_settings(tmp_path_factory.mktemp("node")))
    found.store("stops", 1, {})
    found.publish()
    return found


def test_a_problem_leads_to_its_page(node: StopsNode) -> None:
    problem = json.loads(node.client.get("/api/stops.get?stopId=nobody").text)
    page = node.client.get(problem["page"], headers=BROWSER)
    described = json.loads(node.client.get(problem["page"]).text)

    assert (problem["type"], problem["page"]) == ("urn:foldlake:problem:unknown-key", "/problems/unknown-key")
    assert (page.status_code, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "No event of this key was folded" in page.text
    assert (described["type"], described["statuses"]) == (problem["type"], [404])


def test_the_page_of_a_parameter_s_problem_names_it(node: StopsNode) -> None:
    problem = json.loads(node.client.get("/api/stops.get").text)
    described = json.loads(node.client.get(problem["page"]).text)

    assert problem["page"] == "/problems/missing-stop-id"
    assert (described["slug"], described["type"]) == ("missing-stop-id", problem["type"])


def test_the_index_lists_every_problem_and_each_link_leads_to_a_page(node: StopsNode) -> None:
    listed = json.loads(node.client.get("/problems").text)
    index = node.client.get("/problems", headers=BROWSER).text

    assert [one["slug"] for one in listed] == [kind.slug for kind in KINDS]
    for kind in KINDS:
        path = page_of(kind.slug.replace("{", "").replace("}", ""))
        assert f'href="{path}"' in index
        assert node.client.get(path, headers=BROWSER).status_code == 200


def test_names_in_a_text_are_code_and_the_rest_is_escaped(node: StopsNode) -> None:
    page = node.client.get("/problems/repeated-parameter", headers=BROWSER).text
    length = node.client.get("/problems/ambiguous-length", headers=BROWSER).text

    assert "`" not in page + length
    assert "<code>Content-Length</code>" in length
    assert marked_up("a < `b>c` & d") == "a &lt; <code>b&gt;c</code> &amp; d"


def test_a_page_of_no_problem_is_not_found(node: StopsNode) -> None:
    for slug in ("weather", "UNKNOWN-KEY", "%3Cscript%3E", "a" * 5000):
        answer = node.client.get(f"/problems/{slug}")

        assert (answer.status_code, json.loads(answer.text)["type"]) == (
            404,
            "urn:foldlake:problem:not-found",
        )


@pytest.mark.parametrize(
    ("status", "slug"), [(400, "weather"), (404, "invalid-command"), (400, "Missing-Key")]
)
def test_a_problem_that_no_page_describes_cannot_be_created(status: int, slug: str) -> None:
    with pytest.raises(ValueError, match=r"is not in problem_kinds\.py"):
        ProblemError(status, slug, "")


def test_an_exact_slug_precedes_a_family() -> None:
    kinds = [kind_of(slug) for slug in ("invalid-query", "invalid-limit", "missing-key", "order-id-too-long")]

    assert [kind.slug for kind in kinds if kind] == [
        "invalid-query",
        "invalid-{parameter}",
        "missing-{parameter}",
        "{parameter}-too-long",
    ]
    assert all(is_kind(reason.slug, reason.value.status) for reason in FailureReason)


@pytest.mark.parametrize(
    ("status", "slug"), [(405, "method-not-allowed"), (418, "http-error"), (501, "http-error")]
)
def test_every_status_of_http_is_a_problem(status: int, slug: str) -> None:
    found, _, body = http_problem(status, "x")

    assert (found, json.loads(body)["type"]) == (status, f"urn:foldlake:problem:{slug}")


@pytest.mark.parametrize(("total", "whose"), [(1, "1 requests are"), (4, "1 requests of this client are")])
def test_a_caller_without_a_slot_learns_whose_limit_it_is(total: int, whose: str) -> None:
    slots = ClientSlots(total, 0.25)
    with slots.slot("a"), pytest.raises(NoFreeSlotError) as refused, slots.slot("a"):
        pass

    status, headers, body = problem_reply(busy_problem(refused.value, "too-many-commands", 2))
    assert (status, dict(headers)["Retry-After"]) == (429, "2")
    assert json.loads(body)["detail"].startswith(whose)


def test_every_refusal_by_a_limit_has_status_429() -> None:
    found = {kind.slug: kind.statuses for kind in KINDS if "too-many-" in kind.slug or "rate" in kind.slug}

    assert found.pop("too-many-keys") == (400,), "the size of the request, not how many there are"
    assert len(found) == 4
    assert set(found.values()) == {(429,)}

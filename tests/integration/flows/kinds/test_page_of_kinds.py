"""The status page shows a flow of a new kind as it shows a route, and each built-in kind in its own words."""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from selenium.webdriver import Chrome

from include.nodes.field_names import FieldNames, renamed
from include.status.flow_status import FlowKind, FlowStatus, StreamStatus
from include.stream.query_reports import Phase, QueryReport
from query_api.http.status.status_routes import FILES
from tests.support.browser.chromium import chromium, missing_browser

pytestmark = pytest.mark.skipif(bool(missing_browser()), reason=f"no browser: {missing_browser()}")
# Renders the section `stream` of a document, and returns the texts of its cells, a list for each row of a table or of the flows.
RENDERED = """
const [{ stream }, { render }] = await Promise.all([import("./flows.js"), import("./lit-html.js")]);
const page = document.createElement("div");
render(stream(arguments[0], null), page);
const texts = (row) => [...row.querySelectorAll("td, th, summary > span")].map((cell) => cell.textContent.trim().replace(/\\s+/g, " "));
return [...page.querySelectorAll("summary, tbody tr")].map(texts);
"""
REPORT = QueryReport("", Phase.REAL_TIME, 2, "", 1, "local", 0.5, task_slots=8)
ROUTE = FlowStatus(
    "route/copies",
    FlowKind.ROUTE,
    "copies",
    "copies",
    stage="live",
    source_topic="balance",
    output_topic="out",
    events_behind=3,
    report=REPORT,
)
LETTERS = FlowStatus(
    "balance.dead-letter", FlowKind.DEAD_LETTERS, "balance", source_topic="balance", records=4
)
FOLD = replace(ROUTE, query="points/v2", kind=FlowKind.FOLD, name="points", belongs_to="points", version=2)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """A browser that can import the page's modules."""
    folder: Path = tmp_path_factory.mktemp("page")
    for name, path in FILES.items():
        shutil.copy(path, folder / name)
    (folder / "index.html").touch()
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder))
    ) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with chromium() as browser:
            browser.get(f"http://127.0.0.1:{server.server_port}/")
            yield browser
        server.shutdown()


def rows(page: Chrome, *flows: FlowStatus) -> Sequence[Sequence[str]]:
    status = json.loads(json.dumps(StreamStatus(flows).to_json())) | {"pace": "latency"}
    document = renamed(status, FieldNames.CAMEL)
    found: Sequence[Sequence[str]] = page.execute_script(RENDERED, document)
    return found


def test_a_kind_from_outside_is_shown_as_a_route(page: Chrome) -> None:
    of_route = rows(page, ROUTE, LETTERS)

    distinct = replace(ROUTE, query="distinct/copies", kind="distinct")
    as_route = json.loads(json.dumps(rows(page, distinct, LETTERS)).replace("distinct", "route"))

    assert as_route == of_route
    summary, query, letters = of_route
    assert summary[0] == "copies route"
    assert {"source balance", "events behind 3", "dead letters 4"} <= set(summary)
    assert query[:4] == ["route/copies", "route → out", "real time", "3"]
    assert letters[1] == "4 dead letters"


def test_each_flow_of_a_read_model_is_described_in_the_words_of_its_kind(page: Chrome) -> None:
    emission = replace(FOLD, kind=FlowKind.EMISSION, query="emission/notices/v2", name="notices")
    ticks = replace(
        emission,
        kind=FlowKind.PERIODIC,
        query="counts",
        name="counts",
        source_topic="points.v2.changelog",
        emit_every_s=10.0,
        newest_output_age_s=4.0,
        has_query=False,
        events_behind=None,
        report=None,
    )
    previous = replace(FOLD, query="points/v1", version=1, stage="previous", report=None)

    summary, *queries = rows(page, previous, FOLD, emission, ticks, LETTERS)

    assert summary[0] == "points read model, v1 previous"
    assert "source balance" in summary
    assert [query[:3] for query in queries] == [
        ["points/v1", "v1, previous", "not running"],
        ["points/v2", "v2, live", "real time"],
        ["emission/notices/v2", "emission of v2, live → out", "real time"],
        ["counts", "periodic emission → out", "tick 4 s ago"],
        ["balance.dead-letter", "4 dead letters", "not running"],
    ]


def test_a_query_that_the_node_does_not_know_is_shown_by_its_name(page: Chrome) -> None:
    other = FlowStatus("query/of-a-test", FlowKind.OTHER, "query/of-a-test", source_topic="x", report=REPORT)

    summary, query = rows(page, other)

    assert summary[0] == "query/of-a-test query"
    assert query[:3] == ["query/of-a-test", "query", "real time"]

"""Reports are listed and served unchanged, and no other file is."""

import json
import os
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from query_api.http.report_index import ListedReport, listed_reports
from query_api.http.report_routes import CHANGES, reports_blueprint


@pytest.fixture
def client(tmp_path: Path) -> FlaskClient:
    (tmp_path / "secret.html").write_text("not yours")
    reports = tmp_path / "quality"
    reports.mkdir()
    (reports / "run-1.html").write_text("<h1>Passed</h1>")
    (reports / "run-1.json").write_text("{}")
    (reports / ".run-2.html.new").write_text("half")
    app = Flask(__name__, static_folder=None)
    app.register_blueprint(reports_blueprint(reports))
    return app.test_client()


def test_reports_are_listed(client: FlaskClient) -> None:
    page = client.get("/reports/quality/")

    assert page.status_code == 200
    assert 'href="run-1.html"' in page.text
    assert ".new" not in page.text


def test_the_list_has_verdict_model_mode_stores_time_and_duration_newest_first(tmp_path: Path) -> None:
    request = {"read_model": "balance", "stores": ["lake", "nodes"], "mode": "incremental"}
    passed = {"request": request, "version": 3, "passed": True, "verdict": "", "duration_s": 12.34}
    summaries = {
        "first": passed,
        "second": passed
        | {"passed": False, "request": request | {"mode": "full"}, "full_check_reason": "no merge"},
        # Its read model cannot be checked: it has no page, and no version.
        "third": {
            "request": request | {"version": None},
            "passed": None,
            "verdict": "visits <mixed>",
            "duration_s": 1.0,
        },
    }
    for number, (name, summary) in enumerate(summaries.items()):
        for path in (tmp_path / f"{name}.json", tmp_path / f"{name}.html"):
            path.write_text(json.dumps(summary))
            os.utime(path, (1_800_000_000 + number, 1_800_000_000 + number))
    (tmp_path / "third.html").unlink()
    (tmp_path / "old.html").write_text("of an older release")
    os.utime(tmp_path / "old.html", (1_700_000_000, 1_700_000_000))

    assert listed_reports(tmp_path) == [
        ListedReport(
            "",
            "2027-01-15 08:00:02",
            "not checked: visits <mixed>",
            "balance",
            "incremental",
            "lake, nodes",
            1.0,
        ),
        ListedReport(
            "second.html",
            "2027-01-15 08:00:01",
            "FAILED",
            "balance v3",
            "all keys, not incremental",
            "lake, nodes",
            12.34,
        ),
        ListedReport(
            "first.html", "2027-01-15 08:00:00", "passed", "balance v3", "incremental", "lake, nodes", 12.34
        ),
        ListedReport("old.html", "2023-11-14 22:13:20"),
    ]
    app = Flask(__name__, static_folder=None)
    app.register_blueprint(reports_blueprint(tmp_path))
    text = app.test_client().get("/reports/quality/").text
    assert '<td class="FAILED">FAILED<td>balance v3' in text
    assert "12.3 s" in text
    assert "visits &lt;mixed&gt;" in text
    assert text.index("second.html") < text.index("first.html") < text.index("old.html")


def test_version_diffs_are_served_with_their_pictures(tmp_path: Path) -> None:
    (tmp_path / "rebuild-balance-v2.html").write_text("<h1>changes</h1>")
    (tmp_path / "rebuild-balance-v2.svg").write_text("<svg/>")
    app = Flask(__name__, static_folder=None)
    app.register_blueprint(reports_blueprint(tmp_path / "none"))
    app.register_blueprint(reports_blueprint(tmp_path, CHANGES))
    client = app.test_client()

    assert "Version diffs" in client.get("/reports/changes/").text
    assert 'href="rebuild-balance-v2.html"' in client.get("/reports/changes/").text
    assert client.get("/reports/quality/rebuild-balance-v2.html").status_code == 404
    with client.get("/reports/changes/rebuild-balance-v2.svg") as picture:
        assert (picture.status_code, picture.mimetype) == (200, "image/svg+xml")
        assert "default-src 'none'" in picture.headers["Content-Security-Policy"]


def test_a_report_is_served_with_a_policy_that_loads_nothing(client: FlaskClient) -> None:
    with client.get("/reports/quality/run-1.html") as page:
        assert (page.status_code, page.get_data(as_text=True)) == (200, "<h1>Passed</h1>")
        assert page.headers["Content-Type"].startswith("text/html")
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    with client.get("/reports/quality/run-1.json") as summary:
        assert summary.json == {}


@pytest.mark.parametrize(
    "name",
    [
        "nothing.html",
        "../secret.html",
        "..%2fsecret.html",
        "%2e%2e/secret.html",
        ".run-2.html.new",
        "a%00b.html",
    ],
)
def test_nothing_else_is_served(client: FlaskClient, name: str) -> None:
    assert client.get(f"/reports/quality/{name}").status_code == 404

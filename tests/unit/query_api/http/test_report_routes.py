"""Reports are listed and served unchanged, and no other file is."""

from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

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


def test_the_reports_of_what_rebuilds_change_are_served_with_their_pictures(tmp_path: Path) -> None:
    (tmp_path / "rebuild-balance-v2.html").write_text("<h1>changes</h1>")
    (tmp_path / "rebuild-balance-v2.svg").write_text("<svg/>")
    app = Flask(__name__, static_folder=None)
    app.register_blueprint(reports_blueprint(tmp_path / "none"))
    app.register_blueprint(reports_blueprint(tmp_path, CHANGES))
    client = app.test_client()

    assert "What rebuilds change" in client.get("/reports/changes/").text
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

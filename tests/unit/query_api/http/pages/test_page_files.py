"""The static files of the pages: revalidated, and only those that are listed; and who may show a page in a frame."""

from pathlib import Path

from flask import Flask

from query_api.http.pages.pages import files_blueprint, origins_of, page_headers


def test_a_file_is_sent_again_only_if_it_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "page.css"
    file.write_text("body {}")
    app = Flask("test")
    app.register_blueprint(files_blueprint("files", "/files", {"page.css": file}))
    client = app.test_client()

    first = client.get("/files/page.css")
    again = client.get("/files/page.css", headers={"If-None-Match": first.headers["ETag"]})

    assert (first.status_code, first.text, first.headers["Content-Type"]) == (
        200,
        "body {}",
        "text/css; charset=utf-8",
    )
    assert (first.headers["Cache-Control"], first.headers["X-Content-Type-Options"]) == (
        "no-cache",
        "nosniff",
    )
    assert (again.status_code, again.text) == (304, "")
    assert client.get("/files/other.css").status_code == 404
    assert client.get("/files/..%2Fsecret").status_code == 404


def test_a_machine_s_own_airflow_has_two_names() -> None:
    assert origins_of("http://127.0.0.1:8080") == ("http://127.0.0.1:8080", "http://localhost:8080")
    assert origins_of("https://airflow.example/base") == ("https://airflow.example",)


def test_a_page_can_be_in_no_frame_unless_an_origin_is_named() -> None:
    assert "frame-ancestors 'none'" in page_headers()["Content-Security-Policy"]
    named = page_headers(("'self'", "http://localhost:8080"))["Content-Security-Policy"]
    assert named.endswith("frame-ancestors 'self' http://localhost:8080")

"""Pages of the origins that a setting lists may call the node and read its answers, and those of no other origin."""

from pathlib import Path

import pytest
from werkzeug.test import Client

from include.errors import SettingsError
from query_api.http.delivery.cross_origin import parse_origins
from tests.unit.query_api.http.parcels import Node, parcels_settings

ORIGIN = "https://app.example"
LOOKUP = "/api/parcels.getPlace?parcelId=A%201/2"
ALLOWED, SHOWN = "Access-Control-Allow-Origin", "Access-Control-Expose-Headers"


def node(tmp_path: Path, *origins: str) -> Client:
    return Node(parcels_settings(tmp_path).changed(node_allowed_origins=origins)).fast


def test_a_page_of_an_allowed_origin_reads_the_answer_and_its_headers(tmp_path: Path) -> None:
    client = node(tmp_path, ORIGIN, "http://localhost:3000")

    answer = client.get(LOOKUP, headers={"Origin": ORIGIN})
    problem = client.get("/api/parcels.getPlace", headers={"Origin": ORIGIN})

    assert (answer.status_code, answer.headers[ALLOWED], answer.headers["Vary"]) == (200, ORIGIN, "Origin")
    assert {"Foldlake-Position", "Foldlake-Lag-Ms", "Retry-After"} <= set(answer.headers[SHOWN].split(", "))
    assert (problem.status_code, problem.headers[ALLOWED]) == (400, ORIGIN)
    assert "Access-Control-Allow-Credentials" not in answer.headers


def test_a_preflight_of_a_command_is_answered(tmp_path: Path) -> None:
    asked = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
    client = node(tmp_path, ORIGIN, "http://localhost:3000")

    allowed = client.options("/api/parcels.weigh", headers=asked)
    foreign = client.options("/api/parcels.weigh", headers={**asked, "Origin": "https://attacker.example"})

    assert (allowed.status_code, allowed.headers[ALLOWED]) == (200, ORIGIN)
    assert "POST" in allowed.headers["Access-Control-Allow-Methods"].split(", ")
    assert {"Authorization", "Content-Type"} <= set(
        allowed.headers["Access-Control-Allow-Headers"].split(", ")
    )
    assert (foreign.status_code, ALLOWED in foreign.headers) == (403, False)


@pytest.mark.parametrize(
    "origin",
    ["https://attacker.example", "https://app.example.attacker.example", "http://app.example", "null"],
)
def test_a_page_of_another_origin_is_refused(tmp_path: Path, origin: str) -> None:
    answer = node(tmp_path, ORIGIN).get(LOOKUP, headers={"Origin": origin})

    assert (answer.status_code, ALLOWED in answer.headers) == (403, False)


def test_without_the_setting_nothing_is_shared(tmp_path: Path) -> None:
    answer = node(tmp_path).get(LOOKUP, headers={"Origin": "http://127.0.0.1:5051"})

    assert (answer.status_code, ALLOWED in answer.headers, "Vary" in answer.headers) == (200, False, False)


@pytest.mark.parametrize(
    "entry",
    [
        "*",
        "null",
        "app.example",
        "https://App.example",
        "https://app.example/",
        "ftp://app.example",
        "https://",
        "https://a b",
    ],
)
def test_what_is_no_origin_is_refused(entry: str) -> None:
    with pytest.raises(SettingsError, match="FOLDLAKE_NODE_ALLOWED_ORIGINS"):
        parse_origins((entry,))

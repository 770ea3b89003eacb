"""Signing in with a browser: a cookie that only pages of this node can use, and no way to another host."""

import json
from pathlib import Path

import pytest
from werkzeug.test import Client, TestResponse

from include.access.api_key import create_key
from include.access.audit import FILE
from include.access.caller import Scope
from query_api.access.key_file import write_key_file
from query_api.http.access.sign_in_page import own_target
from tests.unit.query_api.http.parcels import ANSWER, KEY, Node, parcels_settings

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
ORIGIN = {"Origin": "http://localhost"}
LOOKUP = "/api/parcels.getPlace"
QUERY = {"parcelId": KEY}
COMMAND, BODY, JSON = (
    "/api/parcels.weigh",
    b'{"parcelId": "A", "grams": 5}',
    {"Content-Type": "application/json"},
)


class Browser:
    """A browser, and the secret of a key that its node knows."""

    def __init__(self, tmp_path: Path) -> None:
        settings = parcels_settings(tmp_path).changed(auth="keys")
        key, self.secret = create_key("operator", frozenset({Scope.READ, Scope.WRITE}))
        self.client: Client = Node(settings).fast
        write_key_file(settings.store_dir, [key])

    def sign_in(self, secret: str = "", target: str = "/", origin: str = "http://localhost") -> TestResponse:
        """Send the form of the page; by default with the right secret."""
        form = {"credential": secret or self.secret, "next": target}
        return self.client.post("/sign-in", data=form, headers=HTML | {"Origin": origin})


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    return Browser(tmp_path)


def test_a_browser_without_a_key_gets_the_sign_in_page(browser: Browser) -> None:
    answer = browser.client.get("/explain?key=%C3%A9&readModel=parcels", headers=HTML)

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert 'name="next" value="/explain?key=%C3%A9&amp;readModel=parcels"' in answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    assert "form-action 'self'" in answer.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


def test_a_browser_that_has_signed_in_is_answered_until_it_signs_out(browser: Browser) -> None:
    signed_in = browser.sign_in(target="/reports/quality/")

    assert (signed_in.status_code, signed_in.headers["Location"]) == (303, "/reports/quality/")
    cookie = signed_in.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Secure" not in cookie
    assert browser.client.get(LOOKUP, query_string=QUERY).text == ANSWER
    assert "key:operator" in browser.client.get("/sign-in").text

    assert browser.client.post("/sign-out", headers=ORIGIN).status_code == 303

    assert browser.client.get(LOOKUP, query_string=QUERY).status_code == 401


def test_with_tls_the_cookie_is_for_this_host_and_encrypted_only(browser: Browser) -> None:
    tls = "https://localhost"
    form = {"credential": browser.secret, "next": "/"}
    signed_in = browser.client.post("/sign-in", tls, data=form, headers={"Origin": tls})

    assert signed_in.headers["Set-Cookie"].startswith("__Host-foldlake-key=")
    assert "; Secure; HttpOnly; Path=/; SameSite=Strict" in signed_in.headers["Set-Cookie"]
    assert browser.client.get(LOOKUP, tls, query_string=QUERY).text == ANSWER
    # A cookie of an unencrypted page is not read.
    plain = browser.client.get(
        LOOKUP, tls, query_string=QUERY, headers={"Cookie": f"foldlake-key={browser.secret}"}
    )
    assert plain.status_code in {200, 401}
    assert (
        Client(browser.client.application)
        .get(LOOKUP, tls, query_string=QUERY, headers={"Cookie": f"foldlake-key={browser.secret}"})
        .status_code
        == 401
    )


@pytest.mark.parametrize("wrong", ["fl_x", "fl_000000000000_x", "x", "é"])
def test_a_wrong_secret_sets_no_cookie(browser: Browser, wrong: str, tmp_path: Path) -> None:
    answer = browser.sign_in(wrong)

    assert answer.status_code == 401
    assert "Set-Cookie" not in answer.headers
    assert 'role="alert"' in answer.text
    (entry,) = (json.loads(line) for line in (tmp_path / "home" / FILE).read_text().splitlines())
    assert (entry["action"], entry["path"]) == ("refused", "/sign-in")


@pytest.mark.parametrize("origin", ["http://attacker.example", "http://localhost:3000", "null", ""])
def test_a_page_of_another_origin_signs_nobody_in_or_out(browser: Browser, origin: str) -> None:
    assert browser.sign_in(origin=origin).status_code == 403
    assert browser.client.post("/sign-out", headers={"Origin": origin}).status_code == 403


@pytest.mark.parametrize(
    "origin", ["http://localhost:3000", "http://127.0.0.1", "http://attacker.example", None]
)
def test_a_command_with_the_cookie_must_come_from_a_page_of_this_node(
    browser: Browser, origin: str | None
) -> None:
    browser.sign_in()
    headers = JSON if origin is None else JSON | {"Origin": origin}

    assert browser.client.post(COMMAND, data=BODY, headers=headers).status_code == 403
    # Kafka does not run.
    assert browser.client.post(COMMAND, data=BODY, headers=JSON | ORIGIN).status_code in {503, 504}


def test_a_header_takes_precedence_over_the_cookie(browser: Browser) -> None:
    browser.sign_in()

    answer = browser.client.get(LOOKUP, query_string=QUERY, headers={"Authorization": "Bearer fl_x"})

    assert answer.status_code == 401


@pytest.mark.parametrize(
    "target",
    [
        "//attacker.example",
        "/\\attacker.example",
        "\\\\attacker.example",
        "https://attacker.example",
        "javascript:alert(1)",
        "/\t/attacker.example",
        "/\r\nSet-Cookie: a=b",
        "///attacker.example",
        "attacker.example",
        "//[",
        "",
        "/" + "x" * 5000,
        "/é",
    ],
)
def test_signing_in_leads_to_no_other_host(target: str) -> None:
    assert own_target(target) == "/"


@pytest.mark.parametrize("target", ["/", "/explain?readModel=a&key=%C3%A9", "/map/order-location#here"])
def test_signing_in_leads_to_the_page_that_was_asked_for(target: str) -> None:
    assert own_target(target) == target


def test_the_page_escapes_what_it_is_given(browser: Browser) -> None:
    page = browser.client.get("/sign-in", query_string={"next": '/"><script>alert(1)</script>'}).text

    assert "<script>" not in page


def test_other_forms_are_refused(browser: Browser) -> None:
    json = browser.client.post("/sign-in", data=b"x", headers=ORIGIN | JSON)
    long = browser.client.post("/sign-in", data={"credential": "x" * 100_000}, headers=ORIGIN)

    assert (json.status_code, long.status_code) == (415, 415)


def test_a_form_with_many_fields_is_refused(browser: Browser) -> None:
    answer = browser.client.post("/sign-in", data={f"f{n}": "x" for n in range(10)}, headers=ORIGIN)

    assert answer.status_code == 400

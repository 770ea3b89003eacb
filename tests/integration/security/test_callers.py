"""Nodes with authentication: who is answered, how soon a change of a key takes effect, and which tricks fail. Over real sockets."""

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from include.access.audit import FILE
from include.access.key_changes import KeyRefusedError
from include.access.key_topic import KeyTopic
from include.settings import CHECKOUT, settings_environment
from tests.integration.security.conftest import BALANCE, LOOKUP, SecuredNodes
from tests.support.access.tokens import AUDIENCE, ISSUER, Issuer, unsigned
from tests.support.http.local_http import http_client
from tests.support.http.raw_http import exchange, request_head
from tests.support.waiting import wait_until

ADD = "/api/balance.addFunds"
BODY = b'{"customerId": "bob", "amount": "5.00"}'
RECORDS = "/api/read-models/balance/records"
# With which a change of a key must take effect; plus what the test's own requests take on a busy machine.
SECOND_S, SLACK_S = 1.0, 2.0


def cli(secured: SecuredNodes, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, **settings_environment(secured.settings), "PYTHONPATH": str(CHECKOUT)}
    return subprocess.run(
        [sys.executable, "-m", "cli", "keys", *arguments],
        env=environment,
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def slug(body: bytes) -> str:
    return str(json.loads(body)["type"]).rpartition(":")[2]


def test_only_probes_are_answered_without_a_key(secured: SecuredNodes) -> None:
    for path in (LOOKUP, "/", "/metrics", "/api/status", RECORDS, "/unknown"):
        assert secured.statuses("", path) == {401}
    assert secured.statuses("", "/healthz") == {200}


def test_a_key_of_the_command_line_is_known_on_both_nodes_and_revoked_within_a_second(
    secured: SecuredNodes,
) -> None:
    created = cli(
        secured,
        "create",
        "--name",
        "till 7",
        "--scopes",
        "read",
        "--read-models",
        "balance",
        "--expires",
        "1d",
    )
    assert created.returncode == 0, created.stderr
    secret = created.stdout.strip()
    wait_until(lambda: secured.statuses(secret) == {200}, "both nodes know the key", 5)
    listed = cli(secured, "list", "--json")
    assert secret not in listed.stdout
    (entry,) = (one for one in json.loads(listed.stdout) if one["name"] == "till 7")
    assert (entry["scopes"], entry["readModels"]) == (["read"], ["balance"])

    (ended,) = secured.keys.revoke("till 7", datetime.now(UTC))
    revoked_s = time.monotonic()
    wait_until(lambda: secured.statuses(secret) == {401}, "both nodes refuse the key", 30, poll_s=0.01)

    assert time.monotonic() - revoked_s < SECOND_S + SLACK_S
    assert ended.id == entry["id"]
    again = cli(secured, "revoke", "till 7")
    assert (again.returncode, again.stdout) == (1, "")
    assert "No valid key has the name or id 'till 7'" in again.stderr


def test_a_rotated_key_works_beside_the_present_one_until_that_expires(secured: SecuredNodes) -> None:
    first = secured.key("rotated", expires_in_s=600)

    key, second = secured.keys.rotate("rotated", timedelta(seconds=3), datetime.now(UTC))

    wait_until(lambda: secured.statuses(second) == {200}, "the new secret is known", 5)
    wait_until(lambda: secured.statuses(first) == {401}, "the old secret has expired", 20)
    assert secured.statuses(second) == {200}
    assert key.expires_at is not None
    with pytest.raises(KeyRefusedError, match="There is a key with the name 'rotated'"):
        secured.keys.create("rotated", key.scopes, None, None, datetime.now(UTC))


def test_an_expired_key_is_refused_without_a_change_of_the_topic(secured: SecuredNodes) -> None:
    secret = secured.key("short", expires_in_s=4)

    wait_until(lambda: secured.statuses(secret) == {401}, "the key has expired", 20)

    assert "has expired" in secured.get(secured.ports[0], LOOKUP, secret).json()["detail"]


def test_an_open_stream_ends_when_its_key_is_revoked(secured: SecuredNodes) -> None:
    secret = secured.key("streaming")
    url = f"http://127.0.0.1:{secured.ports[0]}/api/read-models/balance/changes"
    with (
        http_client() as client,
        client.stream("GET", url, headers={"Authorization": f"Bearer {secret}"}) as stream,
    ):
        assert stream.status_code == 200
        parts = stream.iter_raw()
        assert next(parts)
        secured.keys.revoke("streaming", datetime.now(UTC))
        revoked_s = time.monotonic()

        assert sum(len(part) for part in parts) < 10_000

    assert time.monotonic() - revoked_s < SECOND_S + SLACK_S


def test_scopes_and_read_models_hold_on_each_path(secured: SecuredNodes) -> None:
    writer, other = secured.key("writer", "write"), secured.key("other", "read,write", ("loyalty",))
    head = ("Host: localhost", "Content-Type: application/json", f"Content-Length: {len(BODY)}")

    def post(secret: str) -> int:
        request = request_head("POST", ADD, *head, f"Authorization: Bearer {secret}") + BODY
        return exchange(secured.ports[0], request).status

    assert secured.statuses(writer) == {403}
    assert post(writer) == 202
    assert post(other) == 403
    assert secured.statuses(other) == {403}
    assert secured.statuses(other, RECORDS) == {403}
    assert secured.statuses(other, "/api/status") == {403}


TRICKS = [
    "/api/customers%2EgetBalance?customerId=alice",
    "//api/customers.getBalance?customerId=alice",
    "/api/customers.getBalance/?customerId=alice",
    "/healthz/../api/customers.getBalance?customerId=alice",
    "/healthz/%2e%2e/api/customers.getBalance?customerId=alice",
    "/API/customers.getBalance?customerId=alice",
    "/api/customers.getBalance%00?customerId=alice",
    "/api/\uff43ustomers.getBalance?customerId=alice",
    "/api/c%C3%BCstomers.getBalance?customerId=alice",
    "http://localhost/api/customers.getBalance?customerId=alice",
    "/api/read-models/%62alance/records",
    "/api/read-models/loyalty/../balance/records",
    "/api/read-models/loyalty%2F..%2Fbalance/records",
    "/page-files/..%2f..%2fapi/status",
    "*",
]


@pytest.mark.parametrize("target", TRICKS)
def test_no_spelling_of_a_path_gets_past_the_scope(secured: SecuredNodes, other: str, target: str) -> None:
    raw = target.encode().decode("latin-1")
    for credential in ((), (f"Authorization: Bearer {other}",)):
        for method in ("GET", "POST", "OPTIONS"):
            request = request_head(method, raw, "Host: localhost", "Content-Length: 0", *credential)
            answer = exchange(secured.ports[0], request)
            assert b"5.00" not in answer.body
            assert answer.status in {308, 400, 401, 403, 404, 405}


@pytest.fixture(scope="module")
def other(secured: SecuredNodes) -> str:
    """The secret of a key that is limited to another read model."""
    return secured.key("limited", "read,write", ("loyalty",))


def test_headers_of_nodes_are_refused(secured: SecuredNodes) -> None:
    secret = secured.key("peer", "admin")

    for name, value in (("Foldlake-Hop", "any"), ("Foldlake-Served", "1/1")):
        answer = secured.get(secured.ports[0], LOOKUP, secret, **{name: value})
        assert (answer.status_code, slug(answer.content)) == (403, "peer-header")


def test_two_credentials_in_one_request_are_no_way_in(secured: SecuredNodes) -> None:
    secret, port = secured.key("twice"), secured.ports[0]
    wrong, right = "Authorization: Bearer fl_x", f"Authorization: Bearer {secret}"

    answers = [
        exchange(port, request_head("GET", LOOKUP, "Host: localhost", *headers))
        for headers in ((wrong, right), (right, wrong), (f"Authorization_: Bearer {secret}",))
    ]

    assert all(answer.status in {200, 400, 401} for answer in answers)
    assert answers[2].status == 401


def test_tokens_of_the_issuer_are_answered_and_no_others(secured: SecuredNodes) -> None:
    issuer, now = secured.issuer, int(time.time())
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "mallory", "scope": "admin", "exp": now + 600}

    assert secured.statuses(issuer.token(scope="foldlake:read")) == {200}
    assert secured.statuses(issuer.token(scope="write")) == {403}
    for token in (
        issuer.token(exp=now - 60),
        issuer.token(nbf=now + 60),
        issuer.token(iss="https://other.example/"),
        issuer.token(aud="other"),
        Issuer().token(),
        unsigned(claims, {"alg": "none", "kid": "key-1"}),
    ):
        assert secured.statuses(token) == {401}


def test_a_new_key_of_the_issuer_is_accepted_without_a_restart(secured: SecuredNodes) -> None:
    secured.issuer.rotate("ES256")
    token = secured.issuer.token()

    wait_until(lambda: secured.statuses(token) == {200}, "tokens with the new key are accepted", 30)


def test_a_browser_signs_in_and_its_cookie_works_on_pages_of_the_node_only(secured: SecuredNodes) -> None:
    port, secret = secured.ports[0], secured.key("browser", "read,write")
    host = f"127.0.0.1:{port}"
    form = f"credential={secret}&next=/reports/quality/".encode()
    head = (f"Host: {host}", f"Origin: http://{host}", f"Content-Length: {len(form)}")
    page = secured.get(port, "/", Accept="text/html")
    assert (page.status_code, "Sign in" in page.text) == (401, True)

    signed_in = exchange(
        port,
        request_head("POST", "/sign-in", *head, "Content-Type: application/x-www-form-urlencoded") + form,
    )

    assert (signed_in.status, signed_in.headers["location"]) == (303, "/reports/quality/")
    cookie = signed_in.headers["set-cookie"].partition(";")[0]
    assert secured.get(port, LOOKUP, Cookie=cookie).text == BALANCE
    for origin, status in (
        (f"http://{host}", 202),
        ("http://127.0.0.1:1", 403),
        ("http://attacker.example", 403),
    ):
        command = (
            f"Host: {host}",
            f"Origin: {origin}",
            f"Cookie: {cookie}",
            "Content-Type: application/json",
        )
        request = request_head("POST", ADD, *command, f"Content-Length: {len(BODY)}") + BODY
        assert exchange(port, request).status == status


def test_what_was_done_is_in_the_audit_log(secured: SecuredNodes) -> None:
    secret, port = secured.key("audited", "write"), secured.ports[1]
    head = ("Host: localhost", "Content-Type: application/json", f"Content-Length: {len(BODY)}")
    answer = exchange(port, request_head("POST", ADD, *head, f"Authorization: Bearer {secret}") + BODY)
    secured.get(port, LOOKUP, secret)

    entries = [json.loads(line) for line in (secured.settings.home / FILE).read_text().splitlines()]
    own = [entry for entry in entries if entry["who"] == "key:audited" or entry.get("name") == "audited"]

    assert [entry["action"] for entry in own] == ["key-created", "command", "refused"]
    assert own[1]["position"] == json.loads(answer.body)["position"]
    assert own[1]["node"] == "node-2"
    assert own[2]["problem"] == "missing-scope"


def test_a_change_that_was_decided_before_a_revocation_cannot_undo_it(secured: SecuredNodes) -> None:
    secret = secured.key("contested", expires_in_s=600)
    topic = KeyTopic(secured.settings.kafka_connection, 1)
    now = datetime.now(UTC)

    def revoked_meanwhile(keys: object) -> list[object]:
        secured.keys.revoke("contested", now)
        return [key for key in keys.values() if key.name == "contested"]  # type: ignore[attr-defined]

    with pytest.raises(Exception, match="Another process changed the API keys"):
        topic.change(revoked_meanwhile)  # type: ignore[arg-type]

    wait_until(lambda: secured.statuses(secret) == {401}, "the key is revoked", 5)
    assert not any(key.is_valid(now) for key in topic.read().values() if key.name == "contested")

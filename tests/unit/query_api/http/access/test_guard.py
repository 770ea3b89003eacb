"""The guard in front of the fast path and Flask: who is answered, and who is not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from include.access.api_key import create_key
from include.access.caller import Scope
from tests.support.waiting import wait_until
from tests.unit.query_api.http.access.guarded import (
    BODY,
    JSON,
    LOOKUP,
    NODE_WIDE,
    OTHER,
    QUERY,
    READ,
    RECORDS,
    WEIGH,
    WRITE,
    Guarded,
    bearer,
    slug,
)
from tests.unit.query_api.http.parcels import ANSWER, Node, parcels_settings


def test_without_authentication_there_is_no_guard(tmp_path: Path) -> None:
    node = Node(parcels_settings(tmp_path))

    assert node.fast.get(LOOKUP, query_string=QUERY).text == ANSWER
    assert node.fast.get("/sign-in").status_code == 404
    assert node.fast.get(LOOKUP, query_string=QUERY, headers={"Foldlake-Hop": "any"}).status_code == 200


@pytest.mark.parametrize(
    "path", [LOOKUP, f"{RECORDS}?partition=0", *NODE_WIDE, "/unknown", "/explain", "/map/parcels"]
)
def test_nothing_is_answered_without_a_key(guarded: Guarded, path: str) -> None:
    answer = guarded.get(path)

    assert (answer.status_code, slug(answer)) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="foldlake"'
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_need_no_key(guarded: Guarded, path: str) -> None:
    assert guarded.get(path).status_code in {200, 503}
    assert guarded.get(f"/{path}").status_code == 401
    assert guarded.get(f"{path}/").status_code == 401


def test_a_key_is_answered_on_the_fast_path_and_behind_it(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    secret = guarded.secret(READ)

    assert guarded.get(LOOKUP, secret, QUERY).text == ANSWER
    assert guarded.get(LOOKUP, secret, QUERY | {"minOffset": "0"}).text == ANSWER
    assert (
        guarded.client.get(LOOKUP, query_string=QUERY, headers={"Authorization": f"bearer {secret} "}).text
        == ANSWER
    )
    assert [guarded.get(path, secret).status_code for path in NODE_WIDE] == [200] * len(NODE_WIDE)
    assert guarded.get("/unknown", secret).status_code == 404
    assert guarded.client.post(LOOKUP, headers=bearer(secret)).status_code == 405


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Basic YTpi",
        "Bearer fl_x_y",
        "Bearer a b",
        "fl_",
        "Bearer \xff",
        "Bearer eyJhbGciOiJub25lIn0.e30.",
    ],
)
def test_other_credentials_are_refused(guarded: Guarded, header: str) -> None:
    guarded.secret(READ)

    answer = guarded.client.get(LOOKUP, query_string=QUERY, headers={"Authorization": header})

    assert (answer.status_code, slug(answer)) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"].endswith('error="invalid_token"')


def test_a_key_ends_when_it_expires_or_is_revoked(guarded: Guarded) -> None:
    expired, ended = guarded.secret(READ, expires_in_s=-1), guarded.secret(READ)
    assert guarded.get(LOOKUP, ended, QUERY).status_code == 200

    guarded.revoke(ended)

    assert "has been revoked" in guarded.get(LOOKUP, ended, QUERY).text
    assert "has expired" in guarded.get(LOOKUP, expired, QUERY).text


def test_an_allowed_lookup_allows_no_other_request(guarded: Guarded) -> None:
    secret, other = guarded.secret(READ, frozenset({"parcels"})), guarded.secret(READ, OTHER)

    for _ in range(2):
        assert guarded.get(LOOKUP, secret, QUERY).text == ANSWER
        assert guarded.get(LOOKUP, other, QUERY).status_code == 403
        assert guarded.get(LOOKUP, f"{secret} x", QUERY).status_code == 401
        assert guarded.get("/api/status", secret).status_code == 403
        for header in ({"Foldlake-Hop": "any"}, {"Host": "attacker.example"}, {"Origin": "http://a.example"}):
            answer = guarded.client.get(LOOKUP, query_string=QUERY, headers=bearer(secret) | header)
            assert answer.status_code == 403
        assert guarded.client.post(LOOKUP, query_string=QUERY, headers=bearer(secret)).status_code == 405


def test_a_lookup_that_was_allowed_ends_with_its_key(guarded: Guarded) -> None:
    secret = guarded.secret(READ, expires_in_s=0.5)
    ended = guarded.secret(READ)
    for _ in range(2):
        assert guarded.get(LOOKUP, ended, QUERY).status_code == 200
    wait_until(lambda: guarded.get(LOOKUP, secret, QUERY).status_code == 401, "the key has expired", 30)

    guarded.revoke(ended)

    assert guarded.get(LOOKUP, ended, QUERY).status_code == 401


def test_a_node_that_knows_no_keys_yet_says_so(tmp_path: Path) -> None:
    node = Node(parcels_settings(tmp_path).changed(auth="keys"))
    _, secret = create_key("a", READ)

    answer = node.fast.get(LOOKUP, query_string=QUERY, headers=bearer(secret))

    assert (answer.status_code, slug(answer), answer.headers["Retry-After"]) == (503, "not-ready", "1")


def test_a_command_needs_write_and_a_lookup_read(guarded: Guarded) -> None:
    reader, writer = guarded.secret(READ), guarded.secret(WRITE)

    refused = guarded.client.post(WEIGH, data=BODY, headers=JSON | bearer(reader))
    assert (refused.status_code, slug(refused)) == (403, "missing-scope")
    assert slug(guarded.get(LOOKUP, writer, QUERY)) == "missing-scope"
    # Kafka does not run.
    assert guarded.client.post(WEIGH, data=BODY, headers=JSON | bearer(writer)).status_code in {503, 504}


def test_a_limited_key_gets_its_read_models_only(guarded: Guarded) -> None:
    own = guarded.secret(READ | WRITE, frozenset({"parcels"}))
    other = guarded.secret(READ | WRITE, OTHER)
    of_parcels = [
        f"{RECORDS}?partition=0",
        f"{RECORDS}/A",
        f"{RECORDS}?key=A",
        "/map/parcels",
        "/explain?readModel=parcels&key=A",
    ]

    assert guarded.get(LOOKUP, own, QUERY).status_code == 200
    assert slug(guarded.get(LOOKUP, other, QUERY)) == "read-model-not-allowed"
    assert [path for path in of_parcels if guarded.get(path, own).status_code in {401, 403}] == []
    assert {slug(guarded.get(path, other)) for path in of_parcels} == {"read-model-not-allowed"}
    assert (
        slug(guarded.client.post(WEIGH, data=BODY, headers=JSON | bearer(other))) == "read-model-not-allowed"
    )
    assert {guarded.get(path, own).status_code for path in [*NODE_WIDE, "/explain"]} == {403}


def test_only_nodes_may_send_the_headers_of_nodes(guarded: Guarded) -> None:
    secret = guarded.secret(frozenset({Scope.ADMIN}))

    for name, value in (("Foldlake-Hop", "any"), ("Foldlake-Served", "1/1"), ("foldlake-hop", "")):
        for path in (LOOKUP, "/api/partitions", "/healthz"):
            answer = guarded.client.get(path, query_string=QUERY, headers=bearer(secret) | {name: value})
            assert (answer.status_code, slug(answer)) == (403, "peer-header")


def test_the_listener_for_nodes_answers_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLDLAKE_STACK_LISTENER", "peers")
    node = Node(parcels_settings(tmp_path).changed(auth="keys"))

    answer = node.fast.get(LOOKUP, query_string=QUERY, headers={"Foldlake-Hop": "any"})

    assert answer.text == ANSWER


def test_a_page_of_another_host_does_not_even_get_the_sign_in_page(guarded: Guarded) -> None:
    answer = guarded.client.get("/", headers={"Host": "attacker.example", "Accept": "text/html"})

    assert answer.status_code == 403
    assert b"foreign-host" in answer.data
    assert b"<form" not in answer.data


def test_refusals_are_in_the_audit_log_without_the_credential(guarded: Guarded) -> None:
    secret = guarded.secret(READ, OTHER)
    wrong = secret[:-1] + ("A" if secret[-1] != "A" else "B")

    guarded.get("/api/status", secret)
    guarded.get("/api/x\n{}", wrong)

    denied, unknown = guarded.audited()
    assert (denied["action"], denied["who"], denied["problem"]) == (
        "refused",
        "key:key 0",
        "read-model-not-allowed",
    )
    assert (denied["credential"], denied["path"], denied["method"]) == (
        secret.split("_")[1],
        "/api/status",
        "GET",
    )
    assert (unknown["who"], unknown["problem"]) == ("anonymous", "unauthenticated")
    assert secret.split("_", 2)[2][:-1] not in json.dumps([denied, unknown])


def test_a_command_is_in_the_audit_log(guarded: Guarded) -> None:
    guarded.client.post(WEIGH, data=b"[]", headers=JSON | bearer(guarded.secret(WRITE)))

    (entry,) = guarded.audited()
    assert (entry["action"], entry["who"], entry["read_model"]) == ("command", "key:key 0", "parcels")
    assert entry["command"] == WEIGH
    assert entry["outcome"] != "accepted"


WAYS: dict[str, Callable[[str], dict[str, str]]] = {
    "a query parameter": lambda _: {},
    "another header": lambda secret: {"X-Api-Key": secret},
    "the user": lambda secret: {"Authorization": f"Digest {secret}"},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_key_anywhere_else_is_not_read(guarded: Guarded, way: str) -> None:
    secret = guarded.secret(READ)

    answer = guarded.client.get(
        LOOKUP, query_string=QUERY | {"access_token": secret}, headers=WAYS[way](secret)
    )

    assert answer.status_code == 401

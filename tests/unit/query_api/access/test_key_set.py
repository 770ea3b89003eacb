"""The issuer's keys: rotated, kept while the issuer is down, and never fetched more often than allowed."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from query_api.access.key_set import KeySet, KeySetError, parse_key_set
from tests.support.access.tokens import Issuer, serving
from tests.support.repetition import repeated
from tests.support.waiting import wait_until


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with serving(Issuer()) as running:
        yield running


def test_a_new_key_is_found_without_a_restart(issuer: Issuer) -> None:
    keys = KeySet(issuer.url, min_interval_s=0.01, max_age_s=1.0)
    with repeated(keys.run_once):
        wait_until(lambda: keys.find("key-1") is not None, "the first key is found")
        before = keys.current
        issuer.rotate("ES256")

        wait_until(lambda: keys.find("key-2") is not None, "the new key is found")

    assert keys.find("key-1") is not None
    assert keys.current is not before


def test_a_withdrawn_key_is_forgotten(issuer: Issuer) -> None:
    keys = KeySet(issuer.url, min_interval_s=0.01, max_age_s=0.05)
    with repeated(keys.run_once):
        wait_until(lambda: keys.find("key-1") is not None, "the first key is found")
        issuer.rotate()
        del issuer.published[0]

        wait_until(lambda: keys.find("key-1") is None, "the withdrawn key is forgotten")


@pytest.mark.parametrize("status", [500, 404, 302])
def test_an_issuer_that_fails_leaves_the_keys_as_they_are(issuer: Issuer, status: int) -> None:
    keys = KeySet(issuer.url)
    keys.fetch()
    issuer.status = status
    before = keys.current

    keys.fetch()

    assert keys.find("key-1") is not None
    assert keys.current is before


def test_an_issuer_that_is_down_leaves_the_keys_as_they_are() -> None:
    with serving(Issuer()) as issuer:
        keys = KeySet(issuer.url)
        keys.fetch()

    keys.fetch()

    assert keys.find("key-1") is not None


def test_requests_with_unknown_keys_cause_few_fetches_and_do_not_wait_long(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("query_api.access.key_set.WAIT_S", 0.05)
    keys = KeySet(issuer.url, min_interval_s=60.0)
    keys.start()
    wait_until(lambda: keys.find("key-1") is not None, "the first key is found")
    fetched = issuer.requests

    with ThreadPoolExecutor(32) as pool:
        found = list(pool.map(keys.find, (f"unknown-{n}" for n in range(500))))

    assert set(found) == {None}
    assert issuer.requests == fetched


def test_only_few_requests_wait_for_an_issuer_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("query_api.access.key_set.WAIT_S", 5.0)
    keys = KeySet("http://127.0.0.1:1/keys")
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(keys.find, f"unknown-{n}") for n in range(8)]
        wait_until(lambda: not keys._waiting.acquire(blocking=False), "eight requests wait")
        began_s = time.monotonic()

        assert keys.find("another") is None

        assert time.monotonic() - began_s < 2.0
        with keys._changed:
            keys._fetches += 1
            keys._changed.notify_all()
        assert {one.result() for one in waiting} == {None}


def test_the_keys_may_be_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "the keys.json"
    path.write_bytes(Issuer().jwks)
    keys = KeySet(path.as_uri())

    keys.fetch()

    assert keys.find("key-1") is not None


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"keys": 7}', b'{"keys": []}', b'{"keys": [7, {}]}'])
def test_a_document_without_public_keys_is_an_error(text: bytes) -> None:
    with pytest.raises(KeySetError):
        parse_key_set(text)


def test_secret_keys_and_keys_for_encryption_are_not_used() -> None:
    issuer = Issuer()
    secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "secret", "alg": "HS256"}
    other_use = {**issuer.published[0], "kid": "encryption", "use": "enc"}

    keys = parse_key_set(json.dumps({"keys": [secret, other_use, *issuer.published]}).encode())

    assert set(keys) == {"key-1"}

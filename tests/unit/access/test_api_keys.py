"""API keys: the secret is not stored, and only the right one, while it is valid, belongs to a key."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from include.access.api_key import (
    create_key,
    ending,
    find_key,
    is_api_key,
    keys_to_json,
    parse_key,
    parse_keys,
    revoked,
)
from include.access.caller import Scope

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
READ = frozenset({Scope.READ})


def test_a_secret_has_256_random_bits_and_is_in_nothing_that_is_stored() -> None:
    key, secret = create_key("till", READ)
    other, other_secret = create_key("till", READ)

    assert re.fullmatch(r"fl_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", secret)
    assert secret.rpartition("_")[2] not in key.to_json().decode()
    assert key.digest not in repr(key)
    assert (key.id, key.digest, secret) != (other.id, other.digest, other_secret)


def test_only_the_whole_secret_finds_its_key() -> None:
    key, secret = create_key("till", READ)
    other, other_secret = create_key("other", READ)
    keys = {key.id: key, other.id: other}
    mixed = f"fl_{key.id}_{other_secret.split('_', 2)[2]}"

    assert find_key(keys, secret) is key
    for wrong in (secret[:-1], secret + "x", secret.upper(), mixed, f"fl_{key.id}_", "fl_", "", "fl_é_ü"):
        assert find_key(keys, wrong) is None
    assert find_key({}, secret) is None


def test_a_key_is_valid_until_it_expires_or_is_revoked() -> None:
    key, _ = create_key("till", READ, expires_at=NOW + HOUR)
    endless, _ = create_key("till", READ)

    assert key.is_valid(NOW)
    assert not key.is_valid(NOW + HOUR)
    assert endless.is_valid(NOW + 10_000 * HOUR)
    assert not revoked(endless, NOW).is_valid(NOW)


def test_a_revocation_and_an_expiry_are_never_moved_to_later() -> None:
    key, _ = create_key("till", READ, expires_at=NOW + HOUR)

    assert revoked(revoked(key, NOW), NOW + HOUR).revoked_at == NOW
    assert ending(key, NOW + 2 * HOUR).expires_at == NOW + HOUR
    assert ending(key, NOW).expires_at == NOW


@pytest.mark.parametrize("read_models", [None, frozenset({"balance", "loyalty"})])
def test_a_key_is_the_same_after_it_was_stored(read_models: frozenset[str] | None) -> None:
    key, _ = create_key("Kasse 7 é", frozenset({Scope.READ, Scope.WRITE}), read_models, NOW + HOUR)
    ended = revoked(key, NOW)

    assert parse_key(key.to_json()) == key
    assert parse_keys(keys_to_json([key])) == {key.id: key}
    assert parse_key(ended.to_json()) == ended


def test_a_record_with_an_unknown_scope_is_no_key() -> None:
    key, _ = create_key("till", READ)

    with pytest.raises(ValueError, match="root"):
        parse_key(key.to_json().replace(b'"read"', b'"root"'))


def test_a_token_is_not_taken_for_a_key() -> None:
    assert is_api_key("fl_anything")
    assert not is_api_key("eyJhbGciOiJSUzI1NiJ9.e30.x")

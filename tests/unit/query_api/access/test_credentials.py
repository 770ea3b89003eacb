"""Verified credentials are remembered, but never longer than they are valid."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from include.access.api_key import ApiKey, create_key, revoked
from include.access.caller import Scope
from include.settings import Settings
from query_api.access import credentials as module
from query_api.access.credentials import CredentialError, Credentials, CredentialsUnavailableError
from query_api.access.key_file import watch_keys, write_key_file
from query_api.access.key_set import KeySet
from query_api.access.token_verifier import TokenVerifier
from tests.support.access.tokens import AUDIENCE, ISSUER, Issuer, serving

READ = frozenset({Scope.READ})


@pytest.fixture(autouse=True)
def changes_are_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("query_api.shared_file.CHECK_S", 0.0)
    # No thread fetches keys here, so nothing has to be waited for.
    monkeypatch.setattr("query_api.access.key_set.WAIT_S", 0.01)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with serving(Issuer()) as running:
        yield running


def stored(folder: Path, *keys: ApiKey) -> Credentials:
    write_key_file(folder, keys)
    return Credentials(watch_keys(folder), None)


def of_tokens(issuer: Issuer) -> tuple[Credentials, KeySet]:
    auth = Settings.of(auth="jwt", jwt_issuer=ISSUER, jwt_audience=AUDIENCE, jwt_jwks_url=issuer.url).auth
    keys = KeySet(issuer.url)
    return Credentials(None, TokenVerifier(auth, keys)), keys


def test_a_remembered_key_is_refused_once_it_is_revoked(tmp_path: Path) -> None:
    key, secret = create_key("till", READ)
    credentials = stored(tmp_path, key)
    assert [credentials.caller(secret).name for _ in range(3)] == ["key:till"] * 3

    write_key_file(tmp_path, [revoked(key, datetime.now(UTC))])

    with pytest.raises(CredentialError, match="has been revoked"):
        credentials.caller(secret)


def test_a_remembered_key_is_refused_once_it_has_expired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, secret = create_key("till", READ, expires_at=datetime.now(UTC) + timedelta(seconds=0.5))
    credentials = stored(tmp_path, key)
    assert credentials.caller(secret).name == "key:till"
    monkeypatch.setattr(module, "find_key", lambda *_: None)
    assert credentials.caller(secret).name == "key:till"

    time.sleep(0.6)

    with pytest.raises(CredentialError, match="unknown"):
        credentials.caller(secret)


def test_a_remembered_token_is_refused_once_its_key_is_withdrawn(issuer: Issuer) -> None:
    credentials, keys = of_tokens(issuer)
    keys.fetch()
    token = issuer.token()
    assert [credentials.caller(token).name for _ in range(3)] == ["jwt:alice"] * 3

    issuer.rotate()
    del issuer.published[0]
    keys.fetch()

    with pytest.raises(CredentialError, match="signing key is unknown"):
        credentials.caller(token)


def test_only_so_many_credentials_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHED_CREDENTIALS", 3)
    made = [create_key(f"key {n}", READ) for n in range(10)]
    credentials = stored(tmp_path, *(key for key, _ in made))

    names = [credentials.caller(secret).name for _, secret in made * 2]

    assert names == [f"key:key {n}" for n in range(10)] * 2
    assert len(credentials._verified) == 3


def test_what_is_refused_is_not_remembered(tmp_path: Path) -> None:
    key, secret = create_key("till", READ)
    credentials = stored(tmp_path)
    with pytest.raises(CredentialError, match="unknown"):
        credentials.caller(secret)

    write_key_file(tmp_path, [key])

    assert credentials.caller(secret).name == "key:till"


def test_a_node_without_the_keys_of_the_issuer_says_that_it_cannot_tell(issuer: Issuer) -> None:
    credentials, _ = of_tokens(issuer)

    with pytest.raises(CredentialsUnavailableError, match="from their issuer yet"):
        credentials.caller(issuer.token())


def test_each_node_accepts_only_what_its_settings_name(tmp_path: Path, issuer: Issuer) -> None:
    key, secret = create_key("till", READ)
    of_keys = stored(tmp_path, key)
    tokens, keys = of_tokens(issuer)
    keys.fetch()

    with pytest.raises(CredentialError, match="is not an API key"):
        of_keys.caller(issuer.token())
    with pytest.raises(CredentialError, match="accepts no API keys"):
        tokens.caller(secret)

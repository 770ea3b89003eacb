"""The settings of callers: which combinations are valid, and that a node is not open by mistake."""

from collections.abc import Mapping

import pytest

from include.errors import SettingsError
from include.settings import Settings, settings_environment
from query_api.access.listener import require_protection

TOKENS = {
    "jwt_issuer": "https://login.example/",
    "jwt_audience": "foldlake",
    "jwt_jwks_url": "https://login.example/keys",
}


@pytest.mark.parametrize(
    ("text", "mode", "keys", "tokens"),
    [
        ("none", "none", False, False),
        ("keys", "keys", True, False),
        ("jwt", "jwt", False, True),
        ("jwt, keys", "keys,jwt", True, True),
    ],
)
def test_the_ways_to_prove_who_a_caller_is(text: str, mode: str, keys: bool, tokens: bool) -> None:
    auth = Settings.of(auth=text, **TOKENS).auth

    assert (auth.mode, auth.accepts_keys, auth.accepts_tokens) == (mode, keys, tokens)
    assert auth.is_on == (keys or tokens)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"auth": "key"}, "FOLDLAKE_AUTH: 'key' is none of: none; keys; jwt; keys,jwt"),
        ({"auth": "none,keys"}, "FOLDLAKE_AUTH: 'none,keys' is none of"),
        (
            {"auth": "jwt"},
            "FOLDLAKE_AUTH=jwt needs FOLDLAKE_JWT_ISSUER, FOLDLAKE_JWT_AUDIENCE, FOLDLAKE_JWT_JWKS_URL",
        ),
        ({"jwt_algorithms": "RS256,HS256"}, "FOLDLAKE_JWT_ALGORITHMS: HS256: use only"),
        ({"jwt_algorithms": "none"}, "FOLDLAKE_JWT_ALGORITHMS: none: use only"),
        ({"jwt_jwks_url": "http://login.example/keys"}, "FOLDLAKE_JWT_JWKS_URL: use an https URL"),
        ({"jwt_jwks_url": "ftp://login.example/keys"}, "FOLDLAKE_JWT_JWKS_URL: use an https URL"),
    ],
)
def test_values_that_would_protect_nothing_are_refused(values: Mapping[str, str], message: str) -> None:
    with pytest.raises(SettingsError) as error:
        Settings.of(**values)

    assert message in str(error.value)


def test_settings_of_tokens_round_trip_through_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.of(auth="keys,jwt", jwt_algorithms="ES256,EdDSA", allow_open=True, **TOKENS)

    for name, value in settings_environment(settings).items():
        monkeypatch.setenv(name, value)

    assert Settings.of() == settings


@pytest.mark.parametrize("bind", ["127.0.0.1", "::1", "localhost", "127.0.1.1"])
def test_a_node_on_loopback_needs_no_authentication(bind: str) -> None:
    assert require_protection(Settings.of(node_bind=bind)) == ""


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.168.1.5", "node.example", ""])
def test_a_node_that_others_reach_needs_authentication_or_says_that_it_is_open(bind: str) -> None:
    with pytest.raises(
        SettingsError, match=r"FOLDLAKE_AUTH is none.*FOLDLAKE_AUTH=keys.*FOLDLAKE_ALLOW_OPEN"
    ):
        require_protection(Settings.of().changed(node_bind=bind))

    assert require_protection(Settings.of(auth="keys").changed(node_bind=bind)) == ""
    assert "may read and write" in require_protection(Settings.of(allow_open="yes").changed(node_bind=bind))

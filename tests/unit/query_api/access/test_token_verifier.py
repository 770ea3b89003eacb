"""A token is accepted only with a valid signature of the issuer, for this audience, at this time."""

import hmac
import json
import time
from collections.abc import Callable, Iterator
from hashlib import sha256

import pytest

from include.access.caller import Caller, Scope
from include.settings import Settings
from query_api.access.key_set import KeySet
from query_api.access.token_verifier import TokenError, TokenVerifier, scopes_of
from tests.support.access.tokens import AUDIENCE, ISSUER, Issuer, encoded, serving, unsigned

CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "sub": "mallory", "scope": "admin", "exp": int(time.time()) + 9999}


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with serving(Issuer()) as running:
        yield running


def verifier_of(issuer: Issuer, **values: object) -> TokenVerifier:
    settings = Settings.of(
        auth="jwt", jwt_issuer=ISSUER, jwt_audience=AUDIENCE, jwt_jwks_url=issuer.url, **values
    )
    keys = KeySet(issuer.url)
    keys.fetch()
    return TokenVerifier(settings.auth, keys)


@pytest.fixture
def verifier(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> TokenVerifier:
    # No thread fetches here, so a request for an unknown key need not wait for it.
    monkeypatch.setattr("query_api.access.key_set.WAIT_S", 0.01)
    return verifier_of(issuer)


def test_a_token_names_its_caller(issuer: Issuer, verifier: TokenVerifier) -> None:
    token = issuer.token(scope="read foldlake:write other:admin openid")

    caller, until_s = verifier.verify(token)

    assert caller == Caller("jwt:alice", frozenset({Scope.READ, Scope.WRITE}))
    assert time.time() + 500 < until_s < time.time() + 700


def test_a_client_without_a_subject_is_named_by_its_id(issuer: Issuer, verifier: TokenVerifier) -> None:
    assert verifier.verify(issuer.token(sub=None, client_id="till"))[0].name == "jwt:till"


def changed(token: str, **claims: object) -> str:
    header, _, signature = token.split(".")
    return f"{header}.{encoded(json.dumps({**CLAIMS, **claims}).encode())}.{signature}"


def hs256(issuer: Issuer) -> str:
    """Return a token with the algorithm HS256, whose shared secret is the public key."""
    text = unsigned(CLAIMS, {"alg": "HS256", "kid": "key-1"}).rpartition(".")[0]
    return f"{text}.{encoded(hmac.new(issuer.public_pem, text.encode(), sha256).digest())}"


def own_key() -> str:
    """Return a token with the key that verifies it in its header."""
    attacker = Issuer()
    return attacker.token({"jwk": attacker.published[0], "kid": "attacker"})


REFUSED: dict[str, Callable[[Issuer], str]] = {
    "expired": lambda issuer: issuer.token(exp=int(time.time()) - 60),
    "not valid yet": lambda issuer: issuer.token(nbf=int(time.time()) + 60),
    "without an expiry": lambda issuer: issuer.token(exp=None),
    "an expiry without end": lambda issuer: issuer.token(exp=float("inf")),
    "a foreign issuer": lambda issuer: issuer.token(iss="https://other.example/"),
    "without an issuer": lambda issuer: issuer.token(iss=None),
    "another audience": lambda issuer: issuer.token(aud="other"),
    "without an audience": lambda issuer: issuer.token(aud=None),
    "without a subject": lambda issuer: issuer.token(sub=None),
    "a key of another issuer": lambda _: Issuer().token(),
    "an unknown key": lambda issuer: issuer.token({"kid": "other"}),
    "a key id of another type": lambda _: unsigned(CLAIMS, {"alg": "RS256", "kid": 7}),
    "no key id": lambda _: unsigned(CLAIMS, {"alg": "RS256"}),
    "alg none": lambda _: unsigned(CLAIMS, {"alg": "none", "kid": "key-1"}),
    "alg None": lambda _: unsigned(CLAIMS, {"alg": "NoNe", "kid": "key-1"}),
    "no alg": lambda _: unsigned(CLAIMS, {"kid": "key-1"}),
    "alg of another type": lambda _: unsigned(CLAIMS, {"alg": ["RS256"], "kid": "key-1"}),
    "no signature": lambda _: unsigned(CLAIMS, {"alg": "RS256", "kid": "key-1"}),
    "a changed claim": lambda issuer: changed(issuer.token(), scope="admin"),
    "the public key as a secret": hs256,
    "its own key in the header": lambda _: own_key(),
    "nested JSON": lambda _: f"{encoded(b'[' * 5000)}.{encoded(b'{}')}.x",
    "too long": lambda issuer: issuer.token(more="x" * 10_000),
    "not ASCII": lambda _: "é.é.é",
    "empty": lambda _: "",
    "no token": lambda _: "a.b",
    "only dots": lambda _: "...",
}


@pytest.mark.parametrize("kind", REFUSED)
def test_any_other_token_is_refused(kind: str, issuer: Issuer, verifier: TokenVerifier) -> None:
    token = REFUSED[kind](issuer)

    with pytest.raises(TokenError) as error:
        verifier.verify(token)

    assert not token or token not in str(error.value)


def test_only_accepted_algorithms_are_used(issuer: Issuer) -> None:
    with pytest.raises(TokenError, match="algorithm that is not accepted"):
        verifier_of(issuer, jwt_algorithms="ES256").verify(issuer.token())


def test_another_claim_may_have_the_scopes(issuer: Issuer) -> None:
    verifier = verifier_of(issuer, jwt_scopes_claim="permissions")

    assert verifier.verify(issuer.token(permissions=["write", 7]))[0].scopes == {Scope.WRITE}
    assert verifier.verify(issuer.token())[0].scopes == set()


@pytest.mark.parametrize("claim", [None, "", 7, {"read": True}, [["read"]], "Read READ reads"])
def test_a_claim_without_known_scopes_gives_none(claim: object) -> None:
    assert scopes_of(claim) == frozenset()

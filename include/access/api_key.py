"""API keys: what Foldlake stores of each, and the secret that only its owner has.

A secret is `fl_<id>_<256 random bits>`. Only its SHA-256 is stored. A slow hash, as for passwords, would add nothing: nobody can try
2^256 secrets, and each request would pay for it.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from hmac import compare_digest

from pydantic import TypeAdapter

from include.access.caller import Caller, Scope

PREFIX = "fl"
ID_BYTES = 6
SECRET_BYTES = 32
# Compared with the secret of an unknown id, so that this takes as long as for a known one.
NO_DIGEST = "0" * 64


@dataclass(frozen=True)
class ApiKey:
    """A key without its secret. digest: SHA-256 of the secret, in hex. read_models: those to which it is limited; None: all.

    expires_at: None for a key that does not expire. A revoked key stays stored, so that each node learns of it.
    """

    id: str
    name: str
    digest: str = field(repr=False)
    scopes: frozenset[Scope]
    created_at: datetime
    read_models: frozenset[str] | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether the key is accepted at this time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    @property
    def caller(self) -> Caller:
        """Who has the key."""
        return Caller(f"key:{self.name}", self.scopes, self.read_models, self.id)

    def to_json(self) -> bytes:
        """Return the key as JSON, in a form that does not depend on the order of sets."""
        fields = _ADAPTER.dump_python(self, mode="json")
        fields["scopes"] = sorted(self.scopes)
        fields["read_models"] = None if self.read_models is None else sorted(self.read_models)
        return _FIELDS.dump_json(fields)


_ADAPTER = TypeAdapter(ApiKey)
_FIELDS = TypeAdapter(dict[str, object])
_MANY = TypeAdapter(tuple[ApiKey, ...])


def parse_key(text: bytes) -> ApiKey:
    """Return the key of a record of the topic; raises ValueError."""
    return _ADAPTER.validate_json(text)


def keys_to_json(keys: Iterable[ApiKey]) -> bytes:
    """Return several keys as JSON, by id."""
    return _MANY.dump_json(tuple(sorted(keys, key=lambda key: key.id)))


def parse_keys(text: bytes) -> dict[str, ApiKey]:
    """Return the keys of such a JSON text, by id; raises ValueError."""
    return {key.id: key for key in _MANY.validate_json(text)}


def create_key(
    name: str,
    scopes: frozenset[Scope],
    read_models: frozenset[str] | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """Return a new key and its secret, which is nowhere else."""
    key_id = secrets.token_hex(ID_BYTES)
    secret = f"{PREFIX}_{key_id}_{secrets.token_urlsafe(SECRET_BYTES)}"
    digest = sha256(secret.encode()).hexdigest()
    return ApiKey(key_id, name, digest, scopes, datetime.now(UTC), read_models, expires_at), secret


def revoked(key: ApiKey, now: datetime) -> ApiKey:
    """Return the key as revoked; one that is revoked already is unchanged."""
    return key if key.revoked_at is not None else replace(key, revoked_at=now)


def ending(key: ApiKey, at: datetime) -> ApiKey:
    """Return the key with an expiry, unless it expires sooner."""
    return key if key.expires_at is not None and key.expires_at <= at else replace(key, expires_at=at)


def is_api_key(credential: str) -> bool:
    """Whether a credential has the form of a key's secret; a signed token begins otherwise."""
    return credential.startswith(f"{PREFIX}_")


def find_key(keys: Mapping[str, ApiKey], secret: str) -> ApiKey | None:
    """Return the key that a secret belongs to, valid or not; None if there is none. The comparison takes constant time."""
    _, _, rest = secret.partition("_")
    key = keys.get(rest.partition("_")[0])
    digest = sha256(secret.encode(errors="replace")).hexdigest()
    is_same = compare_digest(digest, NO_DIGEST if key is None else key.digest)
    return key if is_same else None

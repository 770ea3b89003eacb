"""The settings of who may call a node: by API key, by a signed token (JWT), or by both."""

from math import ceil
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from include.settings.base import SettingsGroup, named_variable, split_names

NONE, KEYS, JWT = "none", "keys", "jwt"
MODES = (KEYS, JWT)
# Of the algorithms of JWS, those whose verifying key cannot sign.
ASYMMETRIC = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class AuthSettings(SettingsGroup):
    """Who may call a node.

    mode: none, keys, jwt, or both as `keys,jwt`. allow_open: whether a node without authentication may listen on other addresses than
    loopback. jwt_issuer, jwt_audience: what a token must name. jwt_jwks_url: where the issuer's public keys are, https or a file.
    jwt_scopes_claim: the claim with the scopes. jwt_algorithms: the signatures that are accepted.

    caller_rate: requests a second of one caller, in each HTTP worker process; 0: no limit. caller_burst: requests at once; 0: those of two seconds.
    """

    mode: str = Field(default=NONE, json_schema_extra=named_variable("auth"))
    allow_open: bool = Field(default=False, json_schema_extra=named_variable("allow_open"))
    jwt_issuer: str = Field(default="", json_schema_extra=named_variable("jwt_issuer"))
    jwt_audience: str = Field(default="", json_schema_extra=named_variable("jwt_audience"))
    jwt_jwks_url: str = Field(default="", json_schema_extra=named_variable("jwt_jwks_url"))
    jwt_scopes_claim: str = Field(
        default="scope", min_length=1, json_schema_extra=named_variable("jwt_scopes_claim")
    )
    jwt_algorithms: tuple[str, ...] = Field(
        default=("RS256", "PS256", "ES256", "EdDSA"),
        min_length=1,
        json_schema_extra=named_variable("jwt_algorithms"),
    )

    caller_rate: float = Field(default=0.0, ge=0, json_schema_extra=named_variable("caller_rate"))
    caller_burst: int = Field(default=0, ge=0, json_schema_extra=named_variable("caller_burst"))

    @property
    def burst(self) -> int:
        """How many requests of one caller are accepted at once."""
        return self.caller_burst or max(1, ceil(2 * self.caller_rate))

    @property
    def is_on(self) -> bool:
        """Whether a node answers only callers that it knows."""
        return self.mode != NONE

    @property
    def accepts_keys(self) -> bool:
        """Whether callers may have an API key."""
        return KEYS in self.mode.split(",")

    @property
    def accepts_tokens(self) -> bool:
        """Whether callers may have a signed token."""
        return JWT in self.mode.split(",")

    @field_validator("mode", mode="after")
    @classmethod
    def _known_mode(cls, value: str) -> str:
        parts = {part.strip() for part in value.split(",")}
        if parts == {NONE}:
            return NONE
        if not parts <= set(MODES):
            raise ValueError(f"{value!r} is none of: none; keys; jwt; keys,jwt")
        return ",".join(mode for mode in MODES if mode in parts)

    @field_validator("jwt_algorithms", mode="before")
    @classmethod
    def _split_algorithms(cls, value: object) -> object:
        """Accept the format of environment variables, `RS256,ES256`."""
        return split_names(value)

    @field_validator("jwt_algorithms", mode="after")
    @classmethod
    def _asymmetric(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := sorted(set(value) - ASYMMETRIC):
            raise ValueError(f"{', '.join(unknown)}: use only {', '.join(sorted(ASYMMETRIC))}")
        return value

    @field_validator("jwt_jwks_url", mode="after")
    @classmethod
    def _trusted_url(cls, value: str) -> str:
        url = urlsplit(value)
        is_local = url.scheme == "http" and url.hostname in LOOPBACK_HOSTS
        if value and not is_local and not (url.scheme == "https" and url.hostname) and url.scheme != "file":
            raise ValueError(
                "use an https URL, or file:///path: keys that arrive unencrypted can be replaced on their way"
            )
        return value

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed = ("jwt_issuer", "jwt_audience", "jwt_jwks_url")
        missing = [f"FOLDLAKE_{name.upper()}" for name in needed if not getattr(self, name)]
        if self.accepts_tokens and missing:
            raise ValueError(f"FOLDLAKE_AUTH={self.mode} needs {', '.join(missing)}")
        return self

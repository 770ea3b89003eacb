"""The schema registry's settings, and how clients connect to it."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from include.http_replies import without_credentials
from include.settings.base import LOOPBACK, NO_SECRET, SettingsGroup, existing_file, named_variable


@dataclass(frozen=True)
class RegistryConnection:
    """The base URL of the registry's Confluent-compatible API, without credentials, and how a client connects to it.

    ca_file: the certificates that it trusts, in PEM format; None: those of the operating system.
    """

    url: str
    username: str = ""
    password: SecretStr = NO_SECRET
    ca_file: Path | None = None

    def __str__(self) -> str:
        """Return the URL."""
        return self.url

    @property
    def credentials(self) -> tuple[str, str] | None:
        """The user's name and password, if there are any."""
        return (self.username, self.password.get_secret_value()) if self.username else None

    @property
    def client_settings(self) -> dict[str, str]:
        """The settings of Confluent's client."""
        found = {"url": self.url}
        if self.credentials:
            found["basic.auth.user.info"] = ":".join(self.credentials)
        if self.ca_file:
            found["ssl.ca.location"] = str(self.ca_file)
        return found

    def tls_context(self) -> ssl.SSLContext | bool:
        """Return which certificates an HTTP client trusts."""
        return True if self.ca_file is None else ssl.create_default_context(cafile=self.ca_file)


class RegistrySettings(SettingsGroup):
    """The schema registry. external_url: one of your own, which may contain a user's name and password; empty: the embedded one.

    username, password: instead of those in the URL. ca_file: the certificates to trust, in PEM format; None: those of the
    operating system.
    """

    external_url: SecretStr = Field(
        default=NO_SECRET, json_schema_extra=named_variable("schema_registry_url")
    )
    port: int = 8081
    username: str = Field(default="", json_schema_extra=named_variable("schema_registry_username"))
    password: SecretStr = Field(
        default=NO_SECRET, json_schema_extra=named_variable("schema_registry_password")
    )
    ca_file: Path | None = Field(default=None, json_schema_extra=named_variable("schema_registry_ca_file"))

    @property
    def url(self) -> str:
        """Base URL of the schema registry's Confluent-compatible API, without credentials."""
        external = self.external_url.get_secret_value()
        return without_credentials(external) if external else f"http://{LOOPBACK}:{self.port}/apis/ccompat/v7"

    @property
    def connection(self) -> RegistryConnection:
        """How clients connect to the registry."""
        parts = urlsplit(self.external_url.get_secret_value())
        username = self.username or unquote(parts.username or "")
        password = self.password or SecretStr(unquote(parts.password or ""))
        return RegistryConnection(self.url, username, password, self.ca_file)

    @field_validator("ca_file", mode="after")
    @classmethod
    def _existing(cls, value: Path | None) -> Path | None:
        return existing_file(value)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = "FOLDLAKE_SCHEMA_REGISTRY_USERNAME", "FOLDLAKE_SCHEMA_REGISTRY_PASSWORD"
        has_login = bool(self.username or self.password or self.ca_file)
        if has_login and not self.external_url:
            raise ValueError(
                "FOLDLAKE_SCHEMA_REGISTRY_USERNAME, _PASSWORD and _CA_FILE are those of a registry of your own: set "
                "FOLDLAKE_SCHEMA_REGISTRY_URL as well, or remove them."
            )
        if bool(self.username) != bool(self.password):
            raise ValueError(f"{names[0]} and {names[1]} belong together: set both, or neither.")
        if self.username and "@" in urlsplit(self.external_url.get_secret_value()).netloc:
            raise ValueError(
                f"{names[0]} is set, and FOLDLAKE_SCHEMA_REGISTRY_URL contains a user's name: remove one of them."
            )
        return self

"""The settings of logs and traces."""

from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from include.settings.base import NO_SECRET, SettingsGroup
from include.settings.choices import LogFormat


class LogSettings(SettingsGroup):
    """The logs of all processes. format: lines of text, or JSON objects."""

    format: LogFormat = LogFormat.TEXT


class TraceSettings(SettingsGroup):
    """Traces in OpenTelemetry's format.

    url: of a collector, to which spans are sent in OTLP over HTTP, with the path; empty: nothing is traced. headers: of these requests, as
    `<name>=<value>,...`. sample_ratio: of the requests that do not say by `traceparent` whether they are traced.
    """

    url: str = ""
    headers: SecretStr = NO_SECRET
    sample_ratio: float = Field(default=1.0, ge=0, le=1)

    @property
    def is_on(self) -> bool:
        """Whether anything is traced."""
        return bool(self.url)

    @property
    def header_values(self) -> dict[str, str]:
        """The headers by name, with their secret values."""
        pairs = (part.partition("=") for part in self.headers.get_secret_value().split(",") if part.strip())
        return {name.strip(): value.strip() for name, _, value in pairs}

    @field_validator("url", mode="after")
    @classmethod
    def _plain_url(cls, value: str) -> str:
        parts = urlsplit(value)
        if value and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.username):
            raise ValueError(
                "The value is not a URL such as http://localhost:4318/v1/traces. Credentials belong into FOLDLAKE_TRACES_HEADERS"
            )
        return value

    @field_validator("headers", mode="after")
    @classmethod
    def _name_and_value(cls, value: SecretStr) -> SecretStr:
        parts = [part for part in value.get_secret_value().split(",") if part.strip()]
        if not all(
            name.strip() and is_given for name, is_given, _ in (part.partition("=") for part in parts)
        ):
            raise ValueError("The value is not a list of <name>=<value>, separated by commas")
        return value

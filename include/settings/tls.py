"""The settings of TLS: for callers of the nodes, and between nodes."""

from pathlib import Path

from pydantic import field_validator

from include.settings.base import SettingsGroup, absolute_path


class TlsSettings(SettingsGroup):
    """TLS for callers of the nodes: PEM files with the server's certificate chain, and its key. Without them, callers use plain HTTP."""

    cert_file: Path | None = None
    key_file: Path | None = None

    @field_validator("cert_file", "key_file", mode="after")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return absolute_path(value)


class NodeTlsSettings(SettingsGroup):
    """TLS between nodes, and from jobs to nodes: PEM files with the trusted CAs, and this process's certificate and key.

    Without them: those that `./foldlake up` has created in the home.
    """

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    @field_validator("ca_file", "cert_file", "key_file", mode="after")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return absolute_path(value)

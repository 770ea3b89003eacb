"""The secrets in the environment of the stack's processes: in one file that only its owner can read, instead of the descriptions.

The description of a process contains a keyed digest of each of its secrets, so that a changed secret changes the description.
"""

import hmac
import json
import secrets
from collections.abc import Mapping
from pathlib import Path

from include.files import PRIVATE_FILE, write_atomically
from include.settings import Settings

# Each of these may be, or contain, a password.
SECRET_SETTINGS = (
    "airflow_password",
    "airflow_database_url",
    "airflow_database_password",
    "alert_webhook_url",
    "pseudonym_key",
    "redis_url",
)
DIGEST_CHARACTERS = 12


def split_secrets(
    settings: Settings, environment: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Split an environment into variables without secrets, and those whose value contains a secret setting."""
    values = settings.by_variable()
    secret_values = [str(values[name]) for name in SECRET_SETTINGS if values[name]]
    secret = {
        name: value
        for name, value in environment.items()
        if any(secret_value in value for secret_value in secret_values)
    }
    return {name: value for name, value in environment.items() if name not in secret}, secret


class SecretsFile:
    """The secrets of all processes, by process and variable. The key of the digests changes whenever the file is created."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._key = str(json.loads(path.read_text(encoding="utf-8"))["key"])
        except (OSError, ValueError, KeyError, TypeError):
            self._key = secrets.token_hex()

    def digests(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return a digest of each value, which tells nothing about it without the file."""
        key = self._key.encode()
        return {
            name: hmac.new(key, value.encode(), "sha256").hexdigest()[:DIGEST_CHARACTERS]
            for name, value in environment.items()
        }

    def write(self, environments: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the file's content."""
        content = json.dumps({"key": self._key, "environments": environments}, indent=1)
        write_atomically(self.path, content, mode=PRIVATE_FILE)

"""The key of the hashes that replace personal values in the outputs of routes."""

import secrets

from include.files import PRIVATE_FILE, write_atomically
from include.settings import Settings

KEY_BYTES = 32
FILE = "pseudonym.key"


def pseudonym_key(settings: Settings) -> bytes:
    """Return the key: the setting, or else a random one that is created once in FOLDLAKE_HOME."""
    if settings.pseudonym_key:
        return settings.pseudonym_key.get_secret_value().encode()
    path = settings.home / FILE
    if not path.is_file():
        write_atomically(path, secrets.token_hex(KEY_BYTES), PRIVATE_FILE)
    return path.read_bytes()

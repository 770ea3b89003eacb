"""Which keys records may have: text in UTF-8, of a limited length. Any character may occur in it, control characters included."""

# Of an event's key. An event with a longer one is a dead letter, so a command refuses it.
MAX_KEY_BYTES = 256


def key_fault(key: bytes, max_bytes: int = MAX_KEY_BYTES) -> str | None:
    """Return why a record cannot have a key, as the end of a sentence; None if it can.

    max_bytes: the longest key of an event by default. A key that a read model derives may be longer, as far as its store allows.
    """
    if not key:
        return "is empty"
    if len(key) > max_bytes:
        return f"has {len(key)} bytes of UTF-8; at most {max_bytes} are allowed"
    try:
        key.decode()
    except UnicodeDecodeError:
        return "is not UTF-8"
    return None

"""What `./foldlake keys` does: create, rotate and revoke keys, each as one change of the topic and one record of the audit log."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from include.access.api_key import ApiKey, create_key, ending, revoked
from include.access.audit import AuditLog
from include.access.caller import Scope
from include.access.key_topic import Keys, KeyTopic
from include.errors import FoldlakeError

MAX_NAME_CHARACTERS = 100


class KeyRefusedError(FoldlakeError):
    """A key cannot be created or changed as requested."""


class KeyChanges:
    """Changes keys. who: the user who does it, for the audit log."""

    def __init__(self, topic: KeyTopic, audit: AuditLog, who: str) -> None:
        self._topic = topic
        self._audit = audit
        self._who = who

    def create(
        self,
        name: str,
        scopes: frozenset[Scope],
        read_models: frozenset[str] | None,
        expires_at: datetime | None,
        now: datetime,
    ) -> tuple[ApiKey, str]:
        """Create a key; return it with its secret. Raises KeyRefusedError if a valid key has this name."""
        if not name.isprintable() or not name.strip() or len(name) > MAX_NAME_CHARACTERS:
            raise KeyRefusedError(
                f"The name {name!r} cannot be used: give up to {MAX_NAME_CHARACTERS} printable characters."
            )
        if expires_at is not None and expires_at <= now:
            raise KeyRefusedError(
                f"{expires_at:%Y-%m-%d %H:%M} UTC is in the past: the key would never be valid."
            )
        key, secret = create_key(name, scopes, read_models, expires_at)

        def decide(keys: Keys) -> Sequence[ApiKey]:
            if any(one.name == name and one.is_valid(now) for one in keys.values()):
                raise KeyRefusedError(
                    f"There is a key with the name {name!r}: choose another name, or replace its secret with "
                    f"`./foldlake keys rotate {name}`."
                )
            return (key,)

        self._topic.change(decide)
        self._record("key-created", key)
        return key, secret

    def rotate(self, name: str, keep: timedelta, now: datetime) -> tuple[ApiKey, str]:
        """Create a key with the name, the scopes and the limits of another one, which expires after `keep`.

        A limited lifetime begins again. name: of the key, or its id. Raises KeyRefusedError.
        """
        made: list[tuple[ApiKey, str]] = []

        def decide(keys: Keys) -> Sequence[ApiKey]:
            old = max(_valid(keys, name, now), key=lambda key: key.created_at)
            lifetime = None if old.expires_at is None else old.expires_at - old.created_at
            expires_at = None if lifetime is None else now + lifetime
            made[:] = [create_key(old.name, old.scopes, old.read_models, expires_at)]
            return made[0][0], ending(old, now + keep)

        self._topic.change(decide)
        self._record("key-rotated", made[0][0])
        return made[0]

    def revoke(self, name: str, now: datetime) -> tuple[ApiKey, ...]:
        """Revoke the valid keys that have this name or id; return them. Raises KeyRefusedError if there is none."""
        changed = self._topic.change(lambda keys: [revoked(key, now) for key in _valid(keys, name, now)])
        for key in changed:
            self._record("key-revoked", key)
        return changed

    def _record(self, action: str, key: ApiKey) -> None:
        self._audit.record(action, self._who, key=key.id, name=key.name, scopes=sorted(key.scopes))


def _valid(keys: Keys, name: str, now: datetime) -> list[ApiKey]:
    found = [key for key in keys.values() if name in {key.id, key.name} and key.is_valid(now)]
    if not found:
        raise KeyRefusedError(
            f"No valid key has the name or id {name!r}: `./foldlake keys list` shows all keys."
        )
    return found

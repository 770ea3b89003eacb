"""`./foldlake keys`: the API keys with which callers reach the nodes."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.display.documents import NamesOption
from cli.servers import KAFKA, with_servers
from include.nodes.field_names import FieldNames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime, timedelta

    from rich.table import Table

    from include.access.api_key import ApiKey
    from include.access.key_changes import KeyChanges
    from include.settings import Settings

Name = Annotated[str, typer.Argument(help="The key's name or id.")]


def run() -> None:
    """Create, list, rotate and revoke API keys. A change takes effect on every node within a second.

    A secret is shown once: Foldlake stores its digest only. FOLDLAKE_AUTH=keys makes nodes demand keys; docs/security.md describes
    how to secure a stack.

    Examples:
      ./foldlake keys create --name till-7 --scopes read,write --read-models balance --expires 90d

      ./foldlake keys list

      ./foldlake keys rotate till-7 --keep 24h

      ./foldlake keys revoke till-7
    """


def create(
    name: Annotated[str, typer.Option(help="Who or what the key is for; unique among valid keys.")],
    scopes: Annotated[str, typer.Option(help="read, write, admin; separated by commas.")] = "read",
    read_models: Annotated[
        str, typer.Option(help="Read models to which the key is limited, separated by commas. Default: all.")
    ] = "",
    expires: Annotated[
        str, typer.Option(help="Lifetime, such as 12h or 90d, or a date. Default: the key does not expire.")
    ] = "",
) -> None:
    """Create a key. Its secret is the only line on the standard output.

    Example:
      ./foldlake keys create --name till-7 --scopes read,write --read-models balance --expires 90d
    """
    from datetime import UTC, datetime

    from include.access.caller import parse_scopes
    from include.declarations.load import load_catalog
    from include.errors import UnknownReadModelError
    from include.settings import Settings

    settings, now = Settings(), datetime.now(UTC)
    try:
        wanted = parse_scopes(scopes)
        expires_at = expiry(expires, now) if expires else None
    except ValueError as error:
        raise typer.BadParameter(f"{error}.") from error
    limited = frozenset(part.strip() for part in read_models.split(",") if part.strip())
    known = load_catalog(settings.declaration_folders).models
    if unknown := sorted(limited - known.keys()):
        raise UnknownReadModelError(
            f"There is no read model {unknown[0]!r}. Known read models: {', '.join(sorted(known))}."
        )
    key, secret = _changes(settings).create(name, wanted, limited or None, expires_at, now)
    _show_secret(settings, key, secret)


def list_keys(
    everything: Annotated[
        bool, typer.Option("--all", help="Also keys that are revoked or have expired.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    names: NamesOption = FieldNames.CAMEL,
) -> None:
    """List the keys, without their secrets. Times are in UTC.

    Example:
      ./foldlake keys list --all
    """
    import json
    from datetime import UTC, datetime

    from rich.console import Console

    from cli.display.documents import print_document
    from include.access.key_topic import KeyTopic
    from include.settings import Settings

    settings, now = Settings(), datetime.now(UTC)
    found = KeyTopic(settings.kafka_connection, settings.topics.replication_factor).read()
    keys = [key for key in found.values() if everything or key.is_valid(now)]
    keys.sort(key=lambda key: (key.name, key.created_at))
    if as_json:
        documents = [json.loads(key.to_json()) for key in keys]
        print_document([{k: v for k, v in one.items() if k != "digest"} for one in documents], names)
        return
    Console().print(keys_table(keys, now))


def rotate(
    name: Name,
    keep: Annotated[str, typer.Option(help="How long the present secret stays valid, such as 1h.")] = "24h",
) -> None:
    """Create a new secret with the name, the scopes and the limits of a key. The present one expires.

    Example:
      ./foldlake keys rotate till-7 --keep 1h
    """
    from datetime import UTC, datetime

    from include.settings import Settings

    settings = Settings()
    try:
        kept = lifetime(keep)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.") from error
    key, secret = _changes(settings).rotate(name, kept, datetime.now(UTC))
    _show_secret(settings, key, secret)


def revoke(name: Name) -> None:
    """Revoke every valid key with this name, or the one with this id. This cannot be undone.

    Example:
      ./foldlake keys revoke till-7
    """
    from datetime import UTC, datetime

    from include.settings import Settings

    for key in _changes(Settings()).revoke(name, datetime.now(UTC)):
        print(f"Revoked: {key.name} ({key.id}).")


COMMANDS: "dict[str, Callable[..., None]]" = {
    "create": create,
    "list": list_keys,
    "rotate": rotate,
    "revoke": revoke,
}
# What cli/app.py adds as commands of this one.
SUBCOMMANDS = {name: with_servers(command, (KAFKA,)) for name, command in COMMANDS.items()}


def lifetime(text: str) -> "timedelta":
    """Return the time that a text such as `12h` or `90d` names; raises ValueError."""
    import re
    from datetime import timedelta

    matched = re.fullmatch(r"([0-9]{1,5})([smhd])", text)
    if matched is None:
        raise ValueError(f"{text!r} is no time: write 30m, 12h or 90d")
    unit = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}[matched[2]]
    return timedelta(**{unit: int(matched[1])})


def expiry(text: str, now: "datetime") -> "datetime":
    """Return the time at which a key expires, given a lifetime or a date in ISO 8601, in UTC if it names no zone; raises ValueError."""
    from datetime import UTC, datetime

    if text[-1:] in "smhd":
        return now + lifetime(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no lifetime such as 90d, and no date such as 2030-12-31") from error
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def keys_table(keys: "Iterable[ApiKey]", now: "datetime") -> "Table":
    """Return a line for each key."""
    from rich.table import Table
    from rich.text import Text

    from include.access.caller import scopes_text

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("name", "id", "scopes", "read models", "created", "expires", "state"):
        table.add_column(column, overflow="fold", no_wrap=column not in ("name", "read models"))
    for key in keys:
        state = "valid" if key.is_valid(now) else "expired" if key.revoked_at is None else "revoked"
        models = "all" if key.read_models is None else ", ".join(sorted(key.read_models))
        table.add_row(
            Text(key.name),
            key.id,
            scopes_text(key.scopes),
            Text(models),
            _minute(key.created_at),
            "never" if key.expires_at is None else _minute(key.expires_at),
            Text(state, style="green" if state == "valid" else "dim"),
        )
    return table


def _changes(settings: "Settings") -> "KeyChanges":
    from include.access.audit import AuditLog, operator_name
    from include.access.key_changes import KeyChanges
    from include.access.key_topic import KeyTopic

    topic = KeyTopic(settings.kafka_connection, settings.topics.replication_factor)
    return KeyChanges(topic, AuditLog(settings.home), operator_name())


def _show_secret(settings: "Settings", key: "ApiKey", secret: str) -> None:
    import sys

    until = "does not expire" if key.expires_at is None else f"expires at {_minute(key.expires_at)} UTC"
    print(
        f"Key {key.id} of {key.name}: {until}. Store its secret now; it is not shown again:", file=sys.stderr
    )
    print(secret)
    if not settings.auth.accepts_keys:
        print(
            "Nodes do not demand keys yet: set FOLDLAKE_AUTH=keys, then run `./foldlake up`.", file=sys.stderr
        )


def _minute(at: "datetime") -> str:
    from datetime import UTC

    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"

"""`./foldlake dead-letters`: the source records that could not be decoded, and why."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from include.kafka.dead_letters import DeadLetters, RecordDigest
    from include.settings import Settings

PREVIEW_CHARACTERS = 32
KEY_CHARACTERS = 16


def run(
    topic: Annotated[
        str, typer.Argument(help="A source topic. Default: the source topics of all read models.")
    ] = "",
    newest: Annotated[
        int, typer.Option("-n", "--newest", min=1, help="Number of dead letters to show per topic.")
    ] = 20,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document, with complete keys and values in hex.")
    ] = False,
) -> None:
    """List the newest dead letters: source records that could not be decoded.

    Each line shows time, reason, source partition and offset, and the start of key and value, or of their digests if they are
    too large for the dead-letter topic. docs/operations.md lists a remedy for each reason.

    Examples:
      ./foldlake dead-letters

      ./foldlake dead-letters balance -n 100

      ./foldlake dead-letters --json
    """
    import json

    from include.settings import Settings

    found = _read(Settings(), topic, newest)
    if as_json:
        print(json.dumps([to_json(letters) for letters in found], indent=2))
        return
    for letters in found:
        print("\n".join(to_lines(letters)))


def _read(settings: "Settings", topic: str, newest: int) -> "list[DeadLetters]":
    from include.declarations.load import load_catalog
    from include.errors import SettingsError
    from include.kafka.dead_letters import DeadLetters, read_dead_letters

    topics = sorted(load_catalog(settings.declaration_folders).source_topics)
    found = []
    for name in [topic] if topic else topics:
        letters = read_dead_letters(settings.kafka.bootstrap_servers, name, newest)
        if letters is None and name not in topics:
            raise SettingsError(f"No topic {name}.dead-letter exists. Source topics: {', '.join(topics)}.")
        # The driver creates the topic at its first start.
        found.append(letters or DeadLetters(name, 0, ()))
    return found


def to_lines(letters: "DeadLetters") -> list[str]:
    """Return a topic's dead letters as table lines, with counts by reason."""
    if not letters.newest:
        return [f"{letters.source_topic}: no dead letters"]
    rows = [("when (UTC)", "reason", "partition/offset", "key", "bytes", "value")]
    rows += [
        (
            f"{letter.written_at:%Y-%m-%d %H:%M:%S}",
            f"{letter.reason} ({letter.failure})" if letter.failure else letter.reason,
            "" if letter.source_offset < 0 else f"{letter.source_partition}/{letter.source_offset}",
            _shown(letter.key, letter.key_digest, KEY_CHARACTERS),
            _size(letter.value, letter.value_digest),
            _shown(letter.value, letter.value_digest, PREVIEW_CHARACTERS),
        )
        for letter in letters.newest
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    counts = ", ".join(f"{count} {reason}" for reason, count in letters.by_reason().items())
    heading = f"{letters.source_topic}: the newest {len(letters.newest)} of {letters.total} dead letters"
    return [heading, *table, f"by reason: {counts}"]


def to_json(letters: "DeadLetters") -> dict[str, Any]:
    """Return a topic's dead letters as a JSON object."""
    return {
        "source_topic": letters.source_topic,
        "total": letters.total,
        "by_reason": letters.by_reason(),
        "newest": [
            {
                "written_at": letter.written_at.isoformat(),
                "reason": letter.reason,
                "failure": letter.failure,
                "source_partition": letter.source_partition,
                "source_offset": letter.source_offset,
                "key_hex": None if letter.key is None else letter.key.hex(),
                "value_hex": None if letter.value is None else letter.value.hex(),
                "key_digest": None if letter.key_digest is None else asdict(letter.key_digest),
                "value_digest": None if letter.value_digest is None else asdict(letter.value_digest),
            }
            for letter in letters.newest
        ],
    }


def _shown(content: bytes | None, digest: "RecordDigest | None", characters: int) -> str:
    """Return the start of a key or value, or of its digest if the letter is a reference."""
    return preview(content, characters) if digest is None else f"sha256 {digest.sha256[:8]}…"


def _size(content: bytes | None, digest: "RecordDigest | None") -> str:
    if digest is not None:
        return str(digest.size_bytes)
    return "" if content is None else str(len(content))


def preview(content: bytes | None, characters: int) -> str:
    """Return the start of a key or value: text in quotes, other bytes in hex."""
    if content is None:
        return "null"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    shown, quote = (text, '"') if text.isprintable() else ("0x" + content.hex(), "")
    cut = shown if len(shown) <= characters else shown[: characters - 1] + "…"
    return f"{quote}{cut}{quote}"

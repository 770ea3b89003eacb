"""`./foldlake dead-letters`: the source records that could not be decoded, and why."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.display.documents import NamesOption
from include.nodes.field_names import FieldNames

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
    names: NamesOption = FieldNames.CAMEL,
) -> None:
    """List the newest dead letters: source records that could not be decoded.

    Each line shows time, reason, source partition and offset, and the start of key and value. If key or value is too large for the
    dead-letter topic, its digest is shown. docs/how-to/dead-letters.md lists a remedy for each reason.

    Examples:
      ./foldlake dead-letters

      ./foldlake dead-letters balance -n 100

      ./foldlake dead-letters --json
    """
    from cli.display.documents import print_document
    from include.settings import Settings

    found = _read(Settings(), topic, newest)
    if as_json:
        print_document([to_json(of_topic) for of_topic in found], names)
        return
    for of_topic in found:
        print("\n".join(to_lines(of_topic)))


def _read(settings: "Settings", topic: str, newest: int) -> "list[DeadLetters]":
    from include.declarations.load import load_catalog
    from include.errors import SettingsError
    from include.kafka.dead_letters import DeadLetters, read_dead_letters

    topics = sorted(load_catalog(settings.declaration_folders).source_topics)
    found = []
    for name in [topic] if topic else topics:
        of_topic = read_dead_letters(settings.kafka_connection, name, newest)
        if of_topic is None and name not in topics:
            raise SettingsError(f"No topic {name}.dead-letter exists. Source topics: {', '.join(topics)}.")
        # The driver creates the topic at its first start.
        found.append(of_topic or DeadLetters(name, 0, ()))
    return found


def to_lines(of_topic: "DeadLetters") -> list[str]:
    """Return a topic's dead letters as table lines, with counts by reason."""
    if not of_topic.newest:
        return [f"{of_topic.source_topic}: no dead letters"]
    rows = [("when (UTC)", "reason", "partition/offset", "key", "bytes", "value")]
    rows += [
        (
            f"{dead_letter.written_at:%Y-%m-%d %H:%M:%S}",
            f"{dead_letter.reason} ({dead_letter.failure})" if dead_letter.failure else dead_letter.reason,
            ""
            if dead_letter.source_offset < 0
            else f"{dead_letter.source_partition}/{dead_letter.source_offset}",
            _shown(dead_letter.key, dead_letter.key_digest, KEY_CHARACTERS),
            _size(dead_letter.value, dead_letter.value_digest),
            _shown(dead_letter.value, dead_letter.value_digest, PREVIEW_CHARACTERS),
        )
        for dead_letter in of_topic.newest
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    counts = ", ".join(f"{count} {reason}" for reason, count in of_topic.by_reason().items())
    heading = f"{of_topic.source_topic}: the newest {len(of_topic.newest)} of {of_topic.total} dead letters"
    return [heading, *table, f"by reason: {counts}"]


def to_json(of_topic: "DeadLetters") -> dict[str, Any]:
    """Return a topic's dead letters as a JSON object."""
    return {
        "source_topic": of_topic.source_topic,
        "total": of_topic.total,
        "by_reason": of_topic.by_reason(),
        "newest": [
            {
                "written_at": dead_letter.written_at.isoformat(),
                "reason": dead_letter.reason,
                "failure": dead_letter.failure,
                "source_partition": dead_letter.source_partition,
                "source_offset": dead_letter.source_offset,
                "key_hex": None if dead_letter.key is None else dead_letter.key.hex(),
                "value_hex": None if dead_letter.value is None else dead_letter.value.hex(),
                "key_digest": None if dead_letter.key_digest is None else asdict(dead_letter.key_digest),
                "value_digest": None
                if dead_letter.value_digest is None
                else asdict(dead_letter.value_digest),
            }
            for dead_letter in of_topic.newest
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

"""The paths of the Delta tables, their columns, and the tag of each commit of `lake/<model>`.

Without Spark, because the command line and the tests read the tags that the jobs write.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from include.declarations.read_model import POSITION_FIELDS, ReadModel, StateField
from include.declarations.state_names import KEY_COLUMN
from include.known_fields import known_fields
from include.position import Offsets


def table_path(lake_root: str, model: str) -> str:
    """Return the table that analysts read."""
    return f"{lake_root}/{model}"


def staging_path(lake_root: str, model: str, version: int) -> str:
    """Return the table of a rebuild that is not promoted yet."""
    return f"{lake_root}/_staging/{model}/v{version}"


def verified_path(lake_root: str, model: str, version: int) -> str:
    """Return the table of a version's verified records, from which incremental quality checks go on."""
    return f"{lake_root}/_verified/{model}/v{version}"


def quality_path(lake_root: str) -> str:
    """Return the table of the quality checks' results."""
    return f"{lake_root}/_quality"


def table_fields(model: ReadModel) -> tuple[StateField, ...]:
    """Return the columns of a read model's table: its key, every field of any fold revision, the position."""
    return (StateField(KEY_COLUMN, "string", model.key_doc), *model.state, *POSITION_FIELDS)


@dataclass(frozen=True)
class CommitTag:
    """The tag of a commit of `lake/<model>`, as JSON in Delta's `userMetadata`.

    version, fold_revision: of the read model; the table contains that version as of this commit.
    operation: compaction, promotion, optimize or vacuum.
    changelog_offsets: partition of that version's changelog -> offset of the first record that is not merged into the table.
    complete_up_to: partition of the source -> offset; every event below it that the version folds is in the table.
    promotion_id: identifies the overwrite on which the content is based, and compaction's checkpoint.
    topic_id: Kafka's id of the changelog topic of these offsets: a recreated topic of the same name has another one. Empty
        in tags of releases that did not write it.
    """

    read_model: str
    version: int
    fold_revision: int
    operation: str
    changelog_offsets: Offsets = field(default_factory=Offsets)
    complete_up_to: Offsets = field(default_factory=Offsets)
    promotion_id: str = ""
    topic_id: str = ""

    def to_json(self) -> str:
        """Return the tag as the JSON text for `userMetadata`."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | None) -> "CommitTag | None":
        """Read a commit's `userMetadata`; None when it is not a tag."""
        try:
            fields: dict[str, Any] = json.loads(text or "")
            for name in ("changelog_offsets", "complete_up_to"):
                fields[name] = Offsets.from_json(fields[name])
            return cls(**known_fields(cls, fields))
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

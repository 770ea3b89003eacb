"""A node's report on each partition under `/api/partitions`: its owner, the offsets read, and the lag."""

import json
from dataclasses import asdict, dataclass, field, replace
from http import HTTPStatus
from typing import Any

from include.nodes.field_names import FieldNames, renamed
from include.nodes.peers import ANSWER_TIMEOUT_S, HOP_ANY, Peer, PeerDownError
from include.position import Offsets
from include.settings import Placement
from include.unknown_fields import ignore_unknown_fields

PARTITIONS_PATH = "/api/partitions"


@dataclass(frozen=True)
class PartitionReport:
    """One partition of one version, as the node `reported_by` sees it.

    owner, standbys: URLs of the nodes. is_held: whether `reported_by` follows the partition.
    changelog_id: Kafka's id of the changelog that `reported_by` follows, in which `position` is valid; empty if it follows none.
    position, end: changelog offsets of the next record to read and of the next to be appended; lag_records: their difference.
    folded: source partition -> the offset after the newest event folded in. source_end: the source's end; events_behind: the
        difference.
    placement: where the read model's records are served from, as the reporting node has it.
    `position` and the fields after it are None (folded: empty) if the node does not follow the partition.
    """

    read_model: str
    version: int
    stage: str
    partition: int
    owner: str | None
    standbys: tuple[str, ...]
    reported_by: str
    is_held: bool
    is_ready: bool
    changelog_topic: str
    position: int | None = None
    end: int | None = None
    lag_records: int | None = None
    source_topic: str = ""
    folded: Offsets = field(default_factory=Offsets)
    source_end: int | None = None
    events_behind: int | None = None
    placement: Placement = Placement.PARTITIONED
    changelog_id: str = ""

    @property
    def is_stored(self) -> bool:
        """Whether the node that reports it stores the partition for lookups: as its owner or as a standby."""
        return self.reported_by == self.owner or self.reported_by in self.standbys

    def as_json(self) -> dict[str, Any]:
        """Return the report as a JSON object; `folded` contains the newest offset folded in of each source partition."""
        return asdict(self) | {"folded": self.folded.newest()}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "PartitionReport":
        """Read the report of another node; raises TypeError, KeyError or ValueError."""
        fields = renamed(fields, FieldNames.SNAKE)
        report = cls(**ignore_unknown_fields(cls, fields))
        folded = Offsets.from_newest_json(fields.get("folded", {}))
        return replace(
            report, standbys=tuple(report.standbys), folded=folded, placement=Placement(report.placement)
        )


def reports_of(node: Peer, timeout_s: float = ANSWER_TIMEOUT_S) -> list[PartitionReport]:
    """Return a node's own reports; raises PeerDownError if it does not respond within the timeout, or is no query node."""
    response = node.get(PARTITIONS_PATH, HOP_ANY, timeout_s)
    if response.status != HTTPStatus.OK:
        raise PeerDownError(f"{PARTITIONS_PATH} returned status {response.status}")
    try:
        return [PartitionReport.from_json(fields) for fields in json.loads(response.body)]
    except (ValueError, TypeError, KeyError) as error:
        raise PeerDownError(f"{PARTITIONS_PATH} returned no partition reports: {error!r}") from error

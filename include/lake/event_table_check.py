"""Checks that an event table has each event of its topic once, by its origin columns and the counts in its tag."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from include.declarations.event_table import OFFSET_COLUMN, PARTITION_COLUMN, AppendedTable
from include.errors import FoldlakeError
from include.lake.tables import table_path
from include.lake.tagged_table import TaggedTable, newest_tag
from include.lake.tags import AppendTag
from include.words import plural

ID_FIELD = "id"


class EventTableMissingError(FoldlakeError):
    """An event table cannot be checked, because nothing has been appended to it yet."""


@dataclass(frozen=True)
class EventTableCheck:
    """What an event table contains, and what it should.

    rows: its rows. expected_rows: as the tag counts them. doubled: rows with the partition and offset of another row. out_of_bounds: rows
    whose offset is not among those that the tag says were read. doubled_ids: rows with the id of another row: the same event was
    appended to the topic twice; 0 if the event type has no id.
    uncounted: offsets that were read and of which no record was counted: control records of transactions, or lost ones.
    """

    rows: int
    expected_rows: int
    doubled: int
    out_of_bounds: int
    doubled_ids: int
    uncounted: int

    @property
    def is_exact(self) -> bool:
        """Whether the table has each event once, and nothing else."""
        return not self.faults

    @property
    def faults(self) -> tuple[str, ...]:
        """What differs, in words; empty if the table is exact."""
        found = (
            (
                self.rows != self.expected_rows,
                f"{plural(self.rows, 'row')} instead of {self.expected_rows:,}",
            ),
            (self.doubled, f"{plural(self.doubled, 'row')} with the partition and offset of another row"),
            (self.out_of_bounds, f"{plural(self.out_of_bounds, 'row')} of offsets that were not read"),
        )
        return tuple(text for is_wrong, text in found if is_wrong)

    def __str__(self) -> str:
        """Return the result in one line."""
        text = "; ".join(self.faults) or f"{plural(self.rows, 'row')}, each event once"
        if self.doubled_ids:
            text += f"; {plural(self.doubled_ids, 'event')} in the topic twice, by id"
        return text


def check_event_table(lake_root: str, declared: AppendedTable) -> EventTableCheck:
    """Check an event table with delta-rs; reads three of its columns into memory.

    Raises EventTableMissingError when nothing has been appended to it yet.
    """
    table, tag = opened(lake_root, declared)
    has_id = any(column.name == ID_FIELD for column in declared.columns)
    columns = [PARTITION_COLUMN, OFFSET_COLUMN, *([ID_FIELD] if has_id else [])]
    rows = table.to_pyarrow_table(columns=columns)
    partitions = pc.unique(rows[PARTITION_COLUMN]).to_pylist()
    outside = [
        pc.and_(
            pc.equal(rows[PARTITION_COLUMN], partition),
            pc.or_(
                pc.less(rows[OFFSET_COLUMN], tag.start.of(partition)),
                pc.greater_equal(rows[OFFSET_COLUMN], tag.offsets.of(partition)),
            ),
        )
        for partition in partitions
    ]
    counted = tag.rows + tag.unreadable + tag.other_types + tag.lost
    return EventTableCheck(
        rows=rows.num_rows,
        expected_rows=tag.rows,
        doubled=rows.num_rows - _distinct(rows, [PARTITION_COLUMN, OFFSET_COLUMN]),
        out_of_bounds=sum(pc.sum(mask).as_py() or 0 for mask in outside),
        doubled_ids=rows.num_rows - _distinct(rows, [ID_FIELD]) if has_id else 0,
        uncounted=tag.records - counted,
    )


def opened(lake_root: str, declared: AppendedTable) -> tuple[DeltaTable, AppendTag]:
    """Return an event table and its newest tag; raises EventTableMissingError when nothing has been appended to it yet."""
    table = TaggedTable.open(table_path(lake_root, declared.name), AppendTag.from_json)
    newest = None if table is None else newest_tag(table.history)
    if table is None or newest is None:
        raise EventTableMissingError(
            f"Nothing has been appended to lake/{declared.name} yet. Hint: `./foldlake compact {declared.name}`."
        )
    return table.delta, newest.tag


def _distinct(rows: pa.Table, columns: list[str]) -> int:
    return int(rows.group_by(columns).aggregate([]).num_rows)

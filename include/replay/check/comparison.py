"""Compares each stored record with a replay of the log, in SQL that both engines understand.

The tables of either engine: `stored` (PLACE, key, and the fields of a state record), and three of the log: `log_keys` (a row for each key: its
number of events and its newest one below each cut), `replayed` (key, position, replayed: the fold of the key's events up to it, a struct of a
record's fields), and `ends` (see `create_absences`). States that cannot be written are in `unwritten` (key, position, failed: what of it fails).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from include.declarations.event_types.event_columns import OFFSET, PARTITION
from include.declarations.expiry import Expiry
from include.lake.sql_tables import quoted as text_literal
from include.position import SOURCE_OFFSET, SOURCE_PARTITION, Offsets
from include.replay.check.readings import PLACE, Replica
from include.replay.check.tables import CheckTables, one_row
from include.replay.rules import quoted
from include.settings import StreamSettings

# The position of a key that no replica has: of all of its events.
ALL_EVENTS = 2**63 - 1
POSITIONS = f"""SELECT key, {SOURCE_OFFSET.name} AS position FROM stored
    UNION SELECT key, {ALL_EVENTS} AS position FROM required ANTI JOIN stored USING (key)"""
# Where a replica lacks a key that it must have: its state may be one that cannot be written there, or after all events.
LACKING = f"""required ANTI JOIN (SELECT "{PLACE}" AS place, key FROM stored) AS there USING (place, key)"""
LACKING_POSITIONS = f"""SELECT key, required_offset AS position FROM {LACKING} UNION SELECT key, {ALL_EVENTS} AS position FROM {LACKING}"""
# The keys whose state cannot be written where a replica must have it, or after all events.
LACKED = f"""SELECT DISTINCT place, key FROM {{keys}} AS keys JOIN unwritten USING (key)
    WHERE position = required_offset OR (position = {ALL_EVENTS} AND required_offset IS NOT NULL)"""
MICROS_PER_S = 1_000_000


def cuts_of(replicas: Iterable[Replica]) -> list[Offsets]:
    """Return the distinct offsets up to which, and from which on the replicas are compared."""
    found: list[Offsets] = []
    for replica in replicas:
        found += [cut for cut in (replica.cut, replica.since) if cut is not None and cut not in found]
    return found


def create_replicas(tables: CheckTables, replicas: Iterable[Replica], cuts: Sequence[Offsets]) -> None:
    """Create `replicas`: place, store, cut and since (indices of `cuts`), key_partition."""

    def number(value: int | None) -> str:
        return f"CAST({'NULL' if value is None else value} AS INTEGER)"

    rows = [
        f"({text_literal(one.name)}, {text_literal(one.store)}, {number(cuts.index(one.cut))}, "
        f"{number(None if one.since is None else cuts.index(one.since))}, {number(one.key_partition)})"
        for one in replicas
    ]
    # A store may have no replica.
    rows.append(f"(CAST(NULL AS VARCHAR), '', {', '.join([number(None)] * 3)})")
    tables.create(
        "replicas",
        f"SELECT * FROM (VALUES {', '.join(rows)}) AS rows(place, store, cut, since, key_partition) WHERE place IS NOT NULL",
    )


def keys_of_replicas(cuts: Sequence[Offsets]) -> str:
    """Return a query of the keys of each replica: those of the log that belong to it, or with an event since it was verified.

    Columns: place, key, partition, required_offset and required_count (of the key's events below the cut; null if there are none).
    """

    def of_cut(column: str, name: str) -> str:
        cases = " ".join(f"WHEN {column} = {i} THEN {name}_{i}" for i in range(len(cuts)))
        return f"CASE {cases} END" if cases else "CAST(NULL AS BIGINT)"

    last, count, before = of_cut("cut", "last"), of_cut("cut", "count"), of_cut("since", "count")
    columns = f"place, key, partition, {last} AS required_offset, {count} AS required_count, since, {before} AS before"
    return f"""(SELECT place, key, partition, required_offset, required_count FROM (
            SELECT {columns} FROM log_keys CROSS JOIN replicas WHERE replicas.key_partition IS NULL
            UNION ALL
            SELECT {columns} FROM log_keys JOIN replicas USING (key_partition)) AS each
        WHERE since IS NULL OR required_count > before)"""


def create_required(tables: CheckTables, cuts: Sequence[Offsets], sample: str) -> None:
    """Create `required`, the keys of each replica that must be there.

    sample: the condition on a key that is compared.
    """
    tables.create(
        "required",
        f"SELECT * FROM {keys_of_replicas(cuts)} AS keys WHERE required_offset IS NOT NULL AND {sample}",
    )


def create_absences(tables: CheckTables, expires: Expiry | None, stream: StreamSettings) -> None:
    """Create `absences` from `ends`: key, position, and whether a replica may lack, and must lack the key after its events up to the position.

    `ends` has a row for each stored position, and one with another position for the key's events beyond these: whether one of these ends the
    item (has_ended), the time of the item in microseconds (item_time), and whether the state cannot be written (has_failed).

    A key that expires is in neither set for a while: the newest item of the store is not that of the log. The store has seen every item
    that is still there, and perhaps none of those that have ended.
    """
    after = 0.0 if expires is None else expires.after_s(stream) * MICROS_PER_S
    tables.create(
        "absences",
        f"""SELECT key, position, has_ended OR coalesce(item_time < newest - {round(after / 2)}, false) AS may_lack,
               has_ended OR has_failed OR coalesce(item_time < newest_there - {round(after * 2)}, false) AS must_lack
        FROM ends CROSS JOIN (SELECT max(item_time) AS newest, max(CASE WHEN NOT has_ended THEN item_time END) AS newest_there FROM ends) AS times""",
    )


def create_no_absences(tables: CheckTables) -> None:
    """Create `absences` and `unwritten` without rows: keys stay, and each state can be written."""
    no_position = "CAST(NULL AS VARCHAR) AS key, CAST(NULL AS BIGINT) AS position"
    tables.create("absences", f"SELECT {no_position}, false AS may_lack, false AS must_lack WHERE false")
    tables.create("unwritten", f"SELECT {no_position}, '' AS failed WHERE false")


def drop_absences(tables: CheckTables) -> None:
    """Remove from `required` the keys that a replica may lack, and lacks: a key that is stored must be right, although it may be absent."""
    tables.create(
        "required",
        f"""SELECT place, key, partition, required_offset, required_count FROM required
        LEFT JOIN (SELECT DISTINCT key, true AS is_absence FROM absences WHERE may_lack) AS absent USING (key)
        LEFT JOIN (SELECT place, key, true AS is_lacked FROM ({LACKED.format(keys="required")}) AS found) AS lacked USING (place, key)
        LEFT JOIN (SELECT DISTINCT "{PLACE}" AS place, key, true AS is_stored FROM stored) AS there USING (place, key)
        WHERE is_stored OR (is_absence IS NULL AND is_lacked IS NULL)""",
    )


def create_late(tables: CheckTables, stores: Collection[str]) -> int:
    """Create `late`: place, key, required_offset of the records of some stores that lack a required event; returns their number."""
    names = ", ".join(map(text_literal, stores))
    tables.create(
        "late",
        f"""SELECT place, key, required_offset FROM required JOIN replicas USING (place) LEFT JOIN
        (SELECT "{PLACE}" AS place, key, max({SOURCE_OFFSET.name}) AS reached FROM stored GROUP BY ALL) AS there USING (place, key)
        WHERE store IN ({names}) AND (reached IS NULL OR reached < required_offset)""",
    )
    return int(one_row(tables, "SELECT count(*) FROM late")[0])


def create_comparison(tables: CheckTables, fields: Iterable[str]) -> None:
    """Create `comparison` of `stored`, `required`, `replayed` and `absences`: a row for each replica and key that is stored there or must be.

    Columns: place, key, partition, stored and replayed (structs of a record's fields; null if there is no such record), stored_offset,
    stored_count, required_offset, required_count (of the key's events below the replica's cut; null if there are none), copy (1 for a
    key's first record, 2 and so on for further ones in the same replica), and stored_has_ended (whether the replica must lack the record).
    """
    position = SOURCE_OFFSET.name
    tables.create(
        "comparison",
        f"""SELECT sides.place, sides.key, coalesce(partition, stored.{SOURCE_PARTITION.name}) AS partition, stored, replayed,
               stored.{position} AS stored_offset, stored.event_count AS stored_count,
               required_offset, required_count, copy, coalesce(must_lack, false) AS stored_has_ended
        FROM (SELECT * FROM (SELECT "{PLACE}" AS place, key, {packed(fields)} AS stored, {position} AS at_offset,
                     row_number() OVER (PARTITION BY "{PLACE}", key ORDER BY {position}) AS copy FROM stored) AS records
              FULL JOIN required USING (place, key)) AS sides
        LEFT JOIN replayed ON replayed.key = sides.key AND replayed.position = at_offset
        LEFT JOIN absences ON absences.key = sides.key AND absences.position = at_offset""",
    )


def packed(fields: Iterable[str], values: Mapping[str, str] | None = None) -> str:
    """Return a struct of these fields. values: name -> the SQL of its value; None: the columns with these names."""
    parts = ", ".join(f"{quoted(name)} := {values[name] if values else quoted(name)}" for name in fields)
    return f"struct_pack({parts})"


def below(cut: Offsets, partition: str = PARTITION, offset: str = OFFSET) -> str:
    """Return the condition that the event at these columns is below a cut."""
    ends = (f'("{partition}" = {number} AND "{offset}" < {end})' for number, end in sorted(cut.items()))
    return " OR ".join(ends) or "false"
